#define _GNU_SOURCE
#define main quota_main
#include "quota.c"
#undef main
#include "catena_nf.c"
#include <limits.h>

static char folder[200], act[16];
static unsigned long long gates[2] = {ULLONG_MAX, ULLONG_MAX};
static int has_acted;

static int open_at(const char *name, int index, int flags) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s%d", folder, name, index);
    return open(path, flags, 0666);
}

/* Says who it is, and waits to go on; once, whichever process comes first. */
static void gate(int index) {
    char byte;
    if (open_at("once", index, O_CREAT | O_EXCL | O_WRONLY) < 0) return;
    int here = open_at("here", index, O_WRONLY), go = open_at("go", index, O_RDONLY);
    if (here < 0 || go < 0 || dprintf(here, "%d\n", getpid()) < 0 || read(go, &byte, 1) != 1) abort();
}

static int is(const char *word) { return strcmp(act, word) == 0; }

static void do_wrong(struct catena_packet *packet) {
    static uint8_t all[LONGEST + 100];
    static const char flow[41] = "\r\n$8\r\nFLUSHALL\r\n*1\r\n$8\r\nFLUSHALL\r\n      ";
    uint64_t number = self.last_update + 1 + is("number");
    uint16_t length = is("long") ? 1025 : is("cut") ? 9 : 8;
    memcpy(all, &number, 8);
    memcpy(all + 8, flow, 40);
    memcpy(all + 48, &length, 2);
    if (is("inject")) {
        catena_update(packet, (const struct catena_flow *)flow, flow, 40);
        return;
    }
    if (is("flood")) {
        static char value[1024];
        struct catena_flow one;
        memset(&one, 7, sizeof one);
        for (uint32_t i = 0; i < 40000; i++) {
            memcpy(one.source, &i, 4);
            catena_update(packet, &one, value, sizeof value);
        }
        return;
    }
    if (is("short")) say(READ, all, 39);
    if (is("none")) say(READ, all, 0);
    if (is("empty")) say(UPDATE, all, 0);
    if (is("kind")) say(0x4e46ffff, all, 40);
    if (is("again")) say(HELLO, all, 0);
    if (is("huge")) say(READ, all, LONGEST + 40);
    if (is("number") || is("cut")) say(UPDATE, all, 58);
    if (is("long")) say(UPDATE, all, 50 + 1025);
    if (is("raw") && write(0, "x", 1) != 1) abort();
    for (;;) pause();
}

static int init_gates(const char *config, struct catena_setup *setup) {
    static char number[32];
    sscanf(config, "%31s %199s %llu %llu %15s", number, folder, &gates[0], &gates[1], act);
    return init(number, setup);
}

static void process_gates(struct catena_packet *packets, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        unsigned long long number = 0;
        for (int at = 0; at < 8; at++) number = number << 8 | packets[i].data[42 + at];
        for (int index = 0; index < 2; index++) if (number >= gates[index]) gate(index);
        if (act[0] && number >= gates[0] && !has_acted) has_acted = 1, do_wrong(&packets[i]);
    }
    process(packets, count);
}

int main(void) {
    static const struct catena_nf nf = {init_gates, process_gates};
    return catena_nf_main(&nf);
}

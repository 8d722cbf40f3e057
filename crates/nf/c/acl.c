/* An access list: drops IPv4 packets from addresses that its configuration denies.
 *
 * Configuration: one `deny ADDRESS` a line.
 */
#include "catena_nf.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define MOST 1024

static uint32_t denied[MOST];
static int count;
static int seen;
static uint16_t listed;

static int init(const char *config, struct catena_setup *setup) {
    seen = catena_counter(setup, "ipv4");
    listed = catena_reason(setup, "denied");
    char address[16];
    for (int used; *config && sscanf(config, " deny %15[0-9.]%n", address, &used) == 1; config += used) {
        if (count == MOST) return catena_refuse(setup, "more than 1024 addresses");
        if (inet_pton(AF_INET, address, &denied[count++]) != 1) return catena_refuse(setup, "not an IPv4 address");
    }
    if (config[strspn(config, " \n")]) return catena_refuse(setup, "expected `deny ADDRESS` on each line");
    return 0;
}

static void process(struct catena_packet *packets, uint32_t packet_count) {
    for (uint32_t i = 0; i < packet_count; i++) {
        struct catena_packet *packet = &packets[i];
        if (packet->length < 34 || packet->data[12] != 0x08 || packet->data[13] != 0x00) continue;
        catena_count(seen, 1);
        uint32_t source;
        memcpy(&source, packet->data + 26, sizeof source);
        for (int rule = 0; rule < count; rule++)
            if (denied[rule] == source) {
                packet->verdict = CATENA_DROP;
                packet->reason = listed;
            }
    }
}

int main(void) {
    static const struct catena_nf nf = {init, process};
    return catena_nf_main(&nf);
}

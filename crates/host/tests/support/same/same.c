/* A function that is also there in Rust, Go and Python: see `languages.rs`. */
#include "catena_nf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char act[16];
static uint64_t divisor;
static int packets, bytes, grown, shrunk, full;
static uint16_t divided, empty, room;

static int init(const char *config, struct catena_setup *setup) {
    char name[80];
    if (strcmp(config, "name") == 0) return catena_counter(setup, "bad name");
    if (strcmp(config, "many") == 0) {
        for (int number = 0; number < 65; number++) {
            snprintf(name, sizeof name, "c%d", number);
            catena_counter(setup, name);
        }
        return 0;
    }
    sscanf(config, "%15s", act);
    if (strcmp(act, "count") == 0) {
        packets = catena_counter(setup, "packets"), bytes = catena_counter(setup, "bytes");
        divided = catena_reason(setup, "divided"), empty = catena_reason(setup, "empty");
        divisor = strtoull(config + strlen("count "), NULL, 10);
    } else if (strcmp(act, "rewrite") == 0) {
        grown = catena_counter(setup, "grown"), shrunk = catena_counter(setup, "shrunk");
        full = catena_counter(setup, "full"), room = catena_reason(setup, "room");
    } else {
        snprintf(name, sizeof name, "no act '%s'", config);
        return catena_refuse(setup, name);
    }
    return 0;
}

static void drop(struct catena_packet *packet, uint16_t reason) {
    packet->verdict = CATENA_DROP, packet->reason = reason;
}

static void count(struct catena_packet *packet) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < packet->length; i++) sum += packet->data[i];
    catena_count(packets, 1);
    catena_count(bytes, packet->length);
    if (packet->length == 0) drop(packet, empty);
    else if (sum % divisor == 0) drop(packet, divided);
}

static void rewrite(struct catena_packet *packet) {
    uint32_t length = packet->length, kind = length % 4;
    if (kind == 0 && packet->writable && packet->head_room >= 4) {
        packet->data -= 4, packet->length += 4;
        memmove(packet->data, packet->data + 4, length < 12 ? length : 12);
        uint8_t tag[4] = {0x81, 0, (uint8_t)packet->port, (uint8_t)packet->group};
        if (packet->length >= 16) memcpy(packet->data + 12, tag, sizeof tag);
        catena_count(grown, 1);
    } else if (kind == 1 && packet->writable && length >= 3) {
        packet->data += 3, packet->length -= 3;
        catena_count(shrunk, 1);
    } else if (kind == 2 && packet->writable && packet->tail_room >= 9) {
        for (int i = 0; i < 8; i++) packet->data[length + i] = (uint8_t)(packet->time >> 8 * i);
        packet->data[length + 8] = (uint8_t)packet->hash;
        packet->length += 9;
        catena_count(grown, 1);
    } else if (kind == 3 && packet->writable) {
        packet->length -= 1;
        packet->data[0] ^= 0x5a;
        catena_count(shrunk, 1);
    } else if (kind == 2) {
        drop(packet, room);
    } else {
        catena_count(full, 1);
    }
}

static void process(struct catena_packet *all, uint32_t number) {
    for (uint32_t i = 0; i < number; i++) act[0] == 'c' ? count(&all[i]) : rewrite(&all[i]);
}

int main(void) {
    static const struct catena_nf nf = {init, process};
    return catena_nf_main(&nf);
}

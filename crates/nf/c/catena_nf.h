/* Network functions for Catena in C: the NF runtime API, version 1.
 *
 * A network function fills in `struct catena_nf` and calls catena_nf_main():
 *
 *     static int init(const char *config, struct catena_setup *setup) { ... return 0; }
 *     static void process(struct catena_packet *packets, uint32_t count) { ... }
 *     int main(void) {
 *         static const struct catena_nf nf = { init, process };
 *         return catena_nf_main(&nf);
 *     }
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CATENA_NF_H
#define CATENA_NF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CATENA_NF_VERSION 1
#define CATENA_NF_COUNTERS 64
#define CATENA_NF_REASONS 32

/* What becomes of a packet. It passes if nothing is said. */
enum catena_verdict { CATENA_PASS = 1, CATENA_DROP = 2 };

/* A packet of a batch. Bytes before `data` (head_room) and behind it (tail_room) may be written to as well: to add bytes in
 * front, decrease `data` and increase `length`. Nothing may be written if the manifest has `writes: none` (`writable` is 0). */
struct catena_packet {
    uint8_t *data;      /* from the Ethernet header on */
    uint32_t length;
    uint16_t verdict;   /* enum catena_verdict */
    uint16_t reason;    /* of a dropped packet, by catena_reason() */
    uint64_t time;      /* when it came: nanoseconds since 1970 */
    uint32_t hash;      /* of its flow; 0 if not known */
    uint16_t port;      /* at which it came */
    uint16_t group;     /* of its flow; 0 if it has none */
    uint16_t head_room;
    uint16_t tail_room;
    uint32_t writable;
    uint32_t index_;    /* the runtime's */
    uint32_t start_;
};

struct catena_setup;

struct catena_nf {
    /* Makes it by its configuration. Returns 0, or another number if the configuration is wrong: see catena_refuse(). */
    int (*init)(const char *config, struct catena_setup *setup);
    /* Processes a batch. */
    void (*process)(struct catena_packet *packets, uint32_t count);
};

/* In init(): names a counter, which reads like an element's. */
int catena_counter(struct catena_setup *setup, const char *name);
/* In init(): names a reason to drop packets. */
uint16_t catena_reason(struct catena_setup *setup, const char *name);
/* In init(): says what is wrong. Returns 1. */
int catena_refuse(struct catena_setup *setup, const char *why);

/* Adds to a counter. */
void catena_count(int counter, uint64_t more);

/* Runs a network function until its host ends: all of main(). */
int catena_nf_main(const struct catena_nf *nf);

#ifdef __cplusplus
}
#endif
#endif

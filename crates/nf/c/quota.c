/* A quota: so many packets of each flow pass. The count of a flow is kept as its state: it outlives the function, and goes with
 * the flow.
 *
 * Configuration: how many.
 */
#include "catena_nf.h"

#include <stdlib.h>
#include <string.h>

static uint64_t most;
static int flows, unread;
static uint16_t above;

static int init(const char *config, struct catena_setup *setup) {
    char *end;
    most = strtoull(config, &end, 10);
    if (!most || end[strspn(end, " \n")]) return catena_refuse(setup, "expected a number of packets");
    flows = catena_counter(setup, "flows");
    unread = catena_counter(setup, "unread");
    above = catena_reason(setup, "above");
    catena_state(setup, CATENA_FLOW);
    return 0;
}

static void process(struct catena_packet *packets, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct catena_flow flow;
        uint64_t had = 0;
        if (catena_flow(&packets[i], &flow)) continue;
        switch (catena_read(&packets[i], &flow, &had, sizeof had)) {
        case CATENA_AWAY: catena_count(unread, 1); continue;
        case CATENA_ABSENT: catena_count(flows, 1);
        }
        if (had < most) {
            had++;
            catena_update(&packets[i], &flow, &had, sizeof had);
        } else {
            packets[i].verdict = CATENA_DROP;
            packets[i].reason = above;
        }
    }
}

int main(void) {
    static const struct catena_nf nf = {init, process};
    return catena_nf_main(&nf);
}

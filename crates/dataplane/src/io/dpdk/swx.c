/* SWX's structures behind functions of plain types. `swx.rs` calls them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_port_ethdev.h>
#include <rte_swx_port_ring.h>

enum { BURST = 32, RING = 1024, BUFFERS = 8191, MOST_KEYS = 64, MOST_FIELDS = 128 };

/* A port where nothing comes in, or goes out: SWX's ports have numbers without gaps. */

static void *idle_create(void *arguments)
{
	(void)arguments;
	return malloc(1);
}

static void idle_free(void *port)
{
	free(port);
}

static int idle_receive(void *port, struct rte_swx_pkt *packet)
{
	(void)port;
	(void)packet;
	return 0;
}

static void idle_received(void *port, struct rte_swx_port_in_stats *stats)
{
	(void)port;
	memset(stats, 0, sizeof(*stats));
}

static void idle_send(void *port, struct rte_swx_pkt *packet)
{
	(void)port;
	rte_pktmbuf_free(packet->handle);
}

static void idle_clone(void *port, struct rte_swx_pkt *packet, uint32_t length)
{
	(void)port;
	(void)packet;
	(void)length;
}

static void idle_flush(void *port)
{
	(void)port;
}

static void idle_sent(void *port, struct rte_swx_port_out_stats *stats)
{
	(void)port;
	memset(stats, 0, sizeof(*stats));
}

static struct rte_swx_port_in_ops idle_in = {
	.create = idle_create, .free = idle_free, .pkt_rx = idle_receive, .stats_read = idle_received,
};

static struct rte_swx_port_out_ops idle_out = {
	.create = idle_create, .free = idle_free, .pkt_tx = idle_send, .pkt_fast_clone_tx = idle_send,
	.pkt_clone_tx = idle_clone, .flush = idle_flush, .stats_read = idle_sent,
};

int catena_swx_new(const char *name, struct rte_swx_pipeline **pipeline)
{
	int result = rte_swx_pipeline_config(pipeline, name, 0);

	if (result == 0)
		result = rte_swx_pipeline_port_in_type_register(*pipeline, "idle", &idle_in);
	if (result == 0)
		result = rte_swx_pipeline_port_out_type_register(*pipeline, "idle", &idle_out);
	return result;
}

int catena_swx_idle(struct rte_swx_pipeline *pipeline, uint32_t port, int in)
{
	return in ? rte_swx_pipeline_port_in_config(pipeline, port, "idle", NULL)
		  : rte_swx_pipeline_port_out_config(pipeline, port, "idle", NULL);
}

int catena_swx_device(struct rte_swx_pipeline *pipeline, uint32_t port, const char *device)
{
	struct rte_swx_port_ethdev_reader_params reader = { .dev_name = device, .queue_id = 0, .burst_size = BURST };
	struct rte_swx_port_ethdev_writer_params writer = { .dev_name = device, .queue_id = 0, .burst_size = BURST };
	int result = rte_swx_pipeline_port_in_config(pipeline, port, "ethdev", &reader);

	return result ? result : rte_swx_pipeline_port_out_config(pipeline, port, "ethdev", &writer);
}

/* A pair of rings, one for frames that come in and one for those that leave. */
int catena_swx_rings(struct rte_swx_pipeline *pipeline, uint32_t port, struct rte_ring **in, struct rte_ring **out)
{
	static unsigned int rings;
	struct rte_swx_port_ring_reader_params reader = { .burst_size = BURST };
	struct rte_swx_port_ring_writer_params writer = { .burst_size = BURST };
	char name[2][RTE_RING_NAMESIZE];
	int result;

	snprintf(name[0], sizeof(name[0]), "catena_in%u", rings);
	snprintf(name[1], sizeof(name[1]), "catena_out%u", rings++);
	*in = rte_ring_create(name[0], RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	*out = rte_ring_create(name[1], RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (*in == NULL || *out == NULL)
		return -rte_errno;
	reader.name = name[0];
	writer.name = name[1];
	result = rte_swx_pipeline_port_in_config(pipeline, port, "ring", &reader);
	return result ? result : rte_swx_pipeline_port_out_config(pipeline, port, "ring", &writer);
}

int catena_swx_pool(struct rte_mempool **pool)
{
	*pool = rte_mempool_lookup("catena_swx");
	if (*pool == NULL)
		*pool = rte_pktmbuf_pool_create("catena_swx", BUFFERS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	return *pool == NULL ? -rte_errno : 0;
}

/* Has a frame come in. What lies behind it is 0. */
int catena_swx_inject(struct rte_ring *ring, struct rte_mempool *pool, const uint8_t *bytes, uint16_t length)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	char *data = mbuf ? rte_pktmbuf_append(mbuf, length) : NULL;

	if (data == NULL || (memcpy(data, bytes, length), rte_ring_enqueue(ring, mbuf) != 0)) {
		rte_pktmbuf_free(mbuf);
		return -ENOBUFS;
	}
	memset(data + length, 0, rte_pktmbuf_tailroom(mbuf));
	return 0;
}

/* Takes a frame that left; its length, or -1 if there is none. */
int catena_swx_take(struct rte_ring *ring, uint8_t *to, uint32_t room)
{
	struct rte_mbuf *mbuf;
	int length;

	if (rte_ring_dequeue(ring, (void **)&mbuf) != 0)
		return -1;
	length = (int)RTE_MIN(mbuf->pkt_len, room);
	memcpy(to, rte_pktmbuf_mtod(mbuf, const uint8_t *), RTE_MIN(length, mbuf->data_len));
	rte_pktmbuf_free(mbuf);
	return length;
}

int catena_swx_waiting(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

int catena_swx_struct(struct rte_swx_pipeline *pipeline, const char *name, const char **names, const uint32_t *bits, uint32_t count)
{
	struct rte_swx_field_params fields[MOST_FIELDS];
	uint32_t i;

	if (count > MOST_FIELDS)
		return -EINVAL;
	for (i = 0; i < count; i++)
		fields[i] = (struct rte_swx_field_params){ .name = names[i], .n_bits = bits[i] };
	return rte_swx_pipeline_struct_type_register(pipeline, name, fields, count, 0);
}

int catena_swx_table(struct rte_swx_pipeline *pipeline, const char *name, const char **keys, int exact, uint32_t count,
		     const char **actions, uint32_t action_count, const char *otherwise, uint32_t size)
{
	struct rte_swx_match_field_params fields[MOST_KEYS];
	struct rte_swx_pipeline_table_params table = {
		.fields = fields, .n_fields = count, .action_names = actions, .n_actions = action_count,
		.default_action_name = otherwise, .default_action_is_const = 1,
	};
	uint32_t i;

	if (count > MOST_KEYS)
		return -EINVAL;
	for (i = 0; i < count; i++)
		fields[i] = (struct rte_swx_match_field_params){
			.name = keys[i], .match_type = exact ? RTE_SWX_TABLE_MATCH_EXACT : RTE_SWX_TABLE_MATCH_WILDCARD,
		};
	return rte_swx_pipeline_table_config(pipeline, name, &table, NULL, NULL, size);
}

/* Adds or deletes an entry as text. It counts from the next commit on. */
int catena_swx_entry(struct rte_swx_ctl_pipeline *control, const char *table, const char *text, int add)
{
	int blank = 0, result;
	struct rte_swx_table_entry *entry = rte_swx_ctl_pipeline_table_entry_read(control, table, text, &blank);

	if (entry == NULL)
		return blank ? 0 : -EINVAL;
	result = add ? rte_swx_ctl_pipeline_table_entry_add(control, table, entry)
		     : rte_swx_ctl_pipeline_table_entry_delete(control, table, entry);
	free(entry->key);
	free(entry->key_mask);
	free(entry->action_data);
	free(entry);
	return result;
}

/* Packets that came in by a port, and those that left by it. */
void catena_swx_counts(struct rte_swx_pipeline *pipeline, uint32_t port, uint64_t *received, uint64_t *sent)
{
	struct rte_swx_port_in_stats in = {0};
	struct rte_swx_port_out_stats out = {0};

	rte_swx_ctl_pipeline_port_in_stats_read(pipeline, port, &in);
	rte_swx_ctl_pipeline_port_out_stats_read(pipeline, port, &out);
	*received = in.n_pkts;
	*sent = out.n_pkts;
}

/* Frees a pipeline and the frames in its rings. Its control handle is left: 22.11 would free the tables a second time with it. */
void catena_swx_free(struct rte_swx_pipeline *pipeline, struct rte_ring **rings, uint32_t count)
{
	struct rte_mbuf *mbuf;
	uint32_t i;

	rte_swx_pipeline_free(pipeline);
	for (i = 0; i < count; i++) {
		while (rings[i] != NULL && rte_ring_dequeue(rings[i], (void **)&mbuf) == 0)
			rte_pktmbuf_free(mbuf);
		rte_ring_free(rings[i]);
	}
}

/* What of DPDK is inline functions and structures, as plain functions of plain types. `mod.rs` calls them. */

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

enum { MOST = 256, DESCRIPTORS = 1024 };

/* Buffers of each queue that packets can lie in beyond those in rings, and how many of a port's must be left for the
 * next to lie in one, too. */
enum { LENT = 4096, RESERVE = 2 * MOST };

/* A key by which both directions of a flow have the same Toeplitz hash. */
enum { KEY = 0x6d5a, LONGEST_KEY = 128 };

/* `Mbuf` of `ffi.rs` is the beginning of a buffer. */
static_assert(offsetof(struct rte_mbuf, buf_addr) == 0, "buf_addr");
static_assert(offsetof(struct rte_mbuf, data_off) == 16, "data_off");
static_assert(offsetof(struct rte_mbuf, ol_flags) == 24, "ol_flags");
static_assert(offsetof(struct rte_mbuf, pkt_len) == 36, "pkt_len");
static_assert(offsetof(struct rte_mbuf, data_len) == 40, "data_len");
static_assert(offsetof(struct rte_mbuf, buf_len) == 54, "buf_len");

struct port {
	char driver[64];
	uint16_t number;
	uint16_t receive_queues, send_queues;
	uint16_t mtu;
	/* Bytes of the longest frame that is sent. */
	uint32_t longest;
	uint8_t spreads;
	uint8_t probed;
};

struct counts {
	uint64_t received, missed, no_buffers, receive_errors, send_errors;
};

static char *heard;
static size_t heard_length;
static FILE *listening;

/* Keeps what DPDK says from now on; it says it on the standard error again after `catena_dpdk_heard`. */
void catena_dpdk_listen(void)
{
	listening = open_memstream(&heard, &heard_length);
	if (listening != NULL)
		rte_openlog_stream(listening);
}

/* What was said, to be freed. */
char *catena_dpdk_heard(void)
{
	if (listening == NULL)
		return NULL;
	rte_openlog_stream(NULL);
	fclose(listening);
	listening = NULL;
	return heard;
}

static void clean_up(void)
{
	rte_eal_cleanup();
}

int catena_dpdk_start(int count, char **arguments)
{
	int result = rte_eal_init(count, arguments);

	if (result < 0)
		return -rte_errno;
	atexit(clean_up);
	return 0;
}

/* Finds the port of a device, which is made or bound first if there is none. */
int catena_dpdk_find(const char *arguments, const char *name, struct port *port)
{
	struct rte_eth_dev_info info;
	int result;

	memset(port, 0, sizeof(*port));
	if (rte_eth_dev_get_port_by_name(name, &port->number) != 0) {
		result = rte_dev_probe(arguments);
		if (result < 0)
			return result;
		port->probed = 1;
		if (rte_eth_dev_get_port_by_name(name, &port->number) != 0)
			return -ENODEV;
	}
	result = rte_eth_dev_info_get(port->number, &info);
	if (result < 0)
		return result;
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	port->receive_queues = info.max_rx_queues;
	port->send_queues = info.max_tx_queues;
	port->spreads = (info.flow_type_rss_offloads & (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP)) != 0;
	if (rte_eth_dev_get_mtu(port->number, &port->mtu) != 0)
		port->mtu = RTE_ETHER_MTU;
	/* VLAN tags are not counted in the MTU. */
	port->longest = port->mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
	if (!(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS))
		port->longest = RTE_MIN(port->longest, RTE_MBUF_DEFAULT_DATAROOM);
	return 0;
}

/* Configures and starts a port with so many queues in either direction. The pool gets their buffers. */
int catena_dpdk_open(const struct port *port, uint16_t queues, int spread, struct rte_mempool **pool)
{
	static unsigned int pools;
	struct rte_eth_conf configuration = {0};
	struct rte_eth_dev_info info;
	uint8_t key[LONGEST_KEY];
	uint16_t receive = DESCRIPTORS, send = DESCRIPTORS;
	unsigned int buffers, i;
	char name[32];
	int result;

	result = rte_eth_dev_info_get(port->number, &info);
	if (result < 0)
		return result;
	configuration.rxmode.mtu = port->mtu;
	if (port->mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN > RTE_MBUF_DEFAULT_DATAROOM) {
		configuration.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
		configuration.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	}
	if (spread) {
		for (i = 0; i < sizeof(key); i++)
			key[i] = i % 2 ? KEY & 0xff : KEY >> 8;
		configuration.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		configuration.rx_adv_conf.rss_conf.rss_key = key;
		configuration.rx_adv_conf.rss_conf.rss_key_len = RTE_MIN(info.hash_key_size ? info.hash_key_size : 40, sizeof(key));
		configuration.rx_adv_conf.rss_conf.rss_hf = (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
	}
	result = rte_eth_dev_configure(port->number, queues, queues, &configuration);
	if (result < 0)
		return result;
	result = rte_eth_dev_adjust_nb_rx_tx_desc(port->number, &receive, &send);
	if (result < 0)
		return result;
	buffers = queues * (receive + send + 2 * RTE_MEMPOOL_CACHE_MAX_SIZE + LENT) + RESERVE;
	snprintf(name, sizeof(name), "catena%u", pools++);
	*pool = rte_pktmbuf_pool_create(name, buffers, RTE_MEMPOOL_CACHE_MAX_SIZE / 2, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (*pool == NULL)
		return -rte_errno;
	for (i = 0; i < queues && result == 0; i++) {
		result = rte_eth_rx_queue_setup(port->number, i, receive, SOCKET_ID_ANY, NULL, *pool);
		if (result == 0)
			result = rte_eth_tx_queue_setup(port->number, i, send, SOCKET_ID_ANY, NULL);
	}
	if (result == 0)
		result = rte_eth_dev_start(port->number);
	if (result == 0)
		/* Frames for all stations are the chain's; a driver that cannot choose takes all. */
		rte_eth_promiscuous_enable(port->number);
	return result;
}

void catena_dpdk_close(const struct port *port)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port->number, &info) == 0;

	rte_eth_dev_stop(port->number);
	if (known && port->probed)
		rte_dev_remove(info.device);
}

/* Frees a pool if all its buffers are back; whether it did. */
int catena_dpdk_free(struct rte_mempool *pool)
{
	if (pool != NULL && !rte_mempool_full(pool))
		return 0;
	rte_mempool_free(pool);
	return 1;
}

/* Whether a port's link is up. */
int catena_dpdk_is_up(uint16_t port)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(port, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

void catena_dpdk_count(uint16_t port, struct counts *counts)
{
	struct rte_eth_stats stats = {0};

	rte_eth_stats_get(port, &stats);
	counts->received = stats.ipackets;
	counts->missed = stats.imissed;
	counts->no_buffers = stats.rx_nombuf;
	counts->receive_errors = stats.ierrors;
	counts->send_errors = stats.oerrors;
}

/* Receives up to `most` frames, which lie in buffers of the pool. Whether they can be lent, as long as it has enough of them,
 * or must be copied. */
uint16_t catena_dpdk_receive(uint16_t port, uint16_t queue, struct rte_mempool *pool, struct rte_mbuf **mbufs, uint16_t most, int *lent)
{
	uint16_t i, n = rte_eth_rx_burst(port, queue, mbufs, most), odd = 0;
	/* Those that threads have at hand are not counted, which would take long. */
	int enough = n > 0 && rte_mempool_get_ops(pool->ops_index)->get_count(pool) >= RESERVE;

	for (i = 0; i < n; i++) {
		const struct rte_mbuf *mbuf = mbufs[i];

		odd |= (mbuf->nb_segs ^ 1) | (rte_mbuf_refcnt_read(mbuf) ^ 1) | !RTE_MBUF_DIRECT(mbuf);
		rte_prefetch0(rte_pktmbuf_mtod(mbuf, const uint8_t *));
	}
	*lent = enough && !odd;
	return n;
}

/* Copies a received frame and gives its buffers back. */
void catena_dpdk_take(struct rte_mbuf *mbuf, uint8_t *to, uint32_t room)
{
	const struct rte_mbuf *piece;

	for (piece = mbuf; piece != NULL && room > 0; piece = piece->next) {
		uint32_t length = RTE_MIN(room, piece->data_len);

		memcpy(to, rte_pktmbuf_mtod(piece, const uint8_t *), length);
		to += length;
		room -= length;
	}
	rte_pktmbuf_free(mbuf);
}

/* Gives back a buffer that was lent or not sent. */
void catena_dpdk_give_back(struct rte_mbuf *mbuf)
{
	rte_pktmbuf_free(mbuf);
}

/* The same for many at a time, among which may be null pointers. */
void catena_dpdk_give_all_back(struct rte_mbuf **mbufs, uint32_t count)
{
	rte_pktmbuf_free_bulk(mbufs, count);
}

/* Copies bytes into as many buffers as it takes; NULL if there are none. */
struct rte_mbuf *catena_dpdk_copy(struct rte_mempool *pool, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *first = rte_pktmbuf_alloc(pool), *last = first;

	while (last != NULL) {
		uint32_t piece = RTE_MIN(length, rte_pktmbuf_tailroom(last));

		memcpy(rte_pktmbuf_mtod(last, uint8_t *), bytes, piece);
		last->data_len = piece;
		first->pkt_len += piece;
		bytes += piece;
		length -= piece;
		if (length == 0)
			return first;
		last->next = rte_pktmbuf_alloc(pool);
		last = last->next;
		first->nb_segs += last != NULL;
	}
	rte_pktmbuf_free(first);
	return NULL;
}

struct frame {
	const uint8_t *bytes;
	uint32_t length;
};

static void fill(struct rte_mempool *pool, void *frame, void *object, unsigned int number)
{
	const struct frame *from = frame;
	struct rte_mbuf *mbuf = object;

	(void)pool;
	(void)number;
	rte_pktmbuf_reset_headroom(mbuf);
	memcpy(rte_pktmbuf_mtod(mbuf, uint8_t *), from->bytes, from->length);
}

/* A pool whose buffers all have a copy of a frame in them; NULL if there is no memory for it, or if the frame is longer than a
 * buffer. */
struct rte_mempool *catena_dpdk_prepare(const uint8_t *bytes, uint32_t length)
{
	static unsigned int pools;
	struct frame frame = { .bytes = bytes, .length = length };
	struct rte_mempool *pool;
	char name[32];

	if (length > RTE_MBUF_DEFAULT_DATAROOM)
		return NULL;
	snprintf(name, sizeof(name), "prepared%u", pools++);
	pool = rte_pktmbuf_pool_create(name, DESCRIPTORS + 2 * RTE_MEMPOOL_CACHE_MAX_SIZE + 2 * MOST, RTE_MEMPOOL_CACHE_MAX_SIZE / 2, 0,
				       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool != NULL)
		rte_mempool_obj_iter(pool, fill, &frame);
	return pool;
}

/* Takes buffers of such a pool, all of them or none: 0 if it did. */
int catena_dpdk_take_prepared(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t count, uint32_t length)
{
	uint32_t i;
	int result = rte_mempool_get_bulk(pool, (void **)mbufs, count);

	/* Buffers in a pool have one segment and one owner; no other flag or field is read than these. */
	for (i = 0; i < count && result == 0; i++) {
		rte_pktmbuf_reset_headroom(mbufs[i]);
		mbufs[i]->ol_flags = 0;
		mbufs[i]->data_len = mbufs[i]->pkt_len = length;
	}
	return result;
}

/* Sends frames. Of how many, counted from the first, the device has the buffers now. */
uint16_t catena_dpdk_send(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, mbufs, count);
}

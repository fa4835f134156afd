/*
 * Names and conversions, which need no device. The distribution's own library passes this
 * program too: what is asked for is what programs know.
 */
#include "test.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/* These have no header any more. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/* distinct wants a text of its own for each number, and one that begins with none for another number. */
#define DISTINCT(function, type, first, last, none)                                                                    \
	do {                                                                                                           \
		for (int i = (first); i <= (last); i++) {                                                              \
			CHECK(strlen(function((enum type)i)) > 0);                                                     \
			CHECK(strncmp(function((enum type)i), none, strlen(none)) != 0);                               \
			for (int j = (first); j < i; j++)                                                              \
				CHECK(strcmp(function((enum type)i), function((enum type)j)) != 0);                    \
		}                                                                                                      \
		EQ(strncmp(function((enum type)1000), none, strlen(none)), 0);                                         \
	} while (0)

static void names(void)
{
	DISTINCT(ibv_wc_status_str, ibv_wc_status, IBV_WC_SUCCESS, IBV_WC_TM_RNDV_INCOMPLETE, "unknown");
	DISTINCT(ibv_event_type_str, ibv_event_type, IBV_EVENT_CQ_ERR, IBV_EVENT_WQ_FATAL, "unknown");
	DISTINCT(ibv_port_state_str, ibv_port_state, IBV_PORT_NOP, IBV_PORT_ACTIVE_DEFER, "unknown");
	DISTINCT(ibv_node_type_str, ibv_node_type, IBV_NODE_CA, IBV_NODE_USNIC_UDP, "unknown");
	DISTINCT(rdma_event_str, rdma_cm_event_type, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT,
		 "UNKNOWN EVENT");
	EQ(strcmp(ibv_wc_status_str(IBV_WC_SUCCESS), "success"), 0);
	EQ(strcmp(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED"), 0);
	EQ(strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"), 0);
}

static void rates(void)
{
	static const struct {
		enum ibv_rate rate;
		int mult, mbps;
	} known[] = {
		{IBV_RATE_2_5_GBPS, 1, 2500},	 {IBV_RATE_5_GBPS, 2, 5000},	   {IBV_RATE_10_GBPS, 4, 10000},
		{IBV_RATE_20_GBPS, 8, 20000},	 {IBV_RATE_30_GBPS, 12, 30000},	   {IBV_RATE_40_GBPS, 16, 40000},
		{IBV_RATE_60_GBPS, 24, 60000},	 {IBV_RATE_80_GBPS, 32, 80000},	   {IBV_RATE_120_GBPS, 48, 120000},
		{IBV_RATE_28_GBPS, 11, 28125},	 {IBV_RATE_50_GBPS, 20, 53125},	   {IBV_RATE_400_GBPS, 160, 425000},
		{IBV_RATE_600_GBPS, 240, 637500}, {IBV_RATE_800_GBPS, 320, 850000}, {IBV_RATE_1200_GBPS, 480, 1275000},
	};
	static const struct {
		enum ibv_rate rate;
		int mbps;
	} no_multiple[] = {
		{IBV_RATE_14_GBPS, 14062},   {IBV_RATE_56_GBPS, 56250},	  {IBV_RATE_112_GBPS, 112500},
		{IBV_RATE_168_GBPS, 168750}, {IBV_RATE_25_GBPS, 25781},	  {IBV_RATE_100_GBPS, 103125},
		{IBV_RATE_200_GBPS, 206250}, {IBV_RATE_300_GBPS, 309375},
	};

	for (size_t i = 0; i < COUNT(known); i++) {
		EQ(ibv_rate_to_mult(known[i].rate), known[i].mult);
		EQ(mult_to_ibv_rate(known[i].mult), known[i].rate);
		EQ(ibv_rate_to_mbps(known[i].rate), known[i].mbps);
		EQ(mbps_to_ibv_rate(known[i].mbps), known[i].rate);
	}
	for (size_t i = 0; i < COUNT(no_multiple); i++) {
		EQ(ibv_rate_to_mbps(no_multiple[i].rate), no_multiple[i].mbps);
		EQ(mbps_to_ibv_rate(no_multiple[i].mbps), no_multiple[i].rate);
	}
	EQ(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	EQ(ibv_rate_to_mbps((enum ibv_rate)99), -1);
	EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
	EQ(mult_to_ibv_rate(-1), IBV_RATE_MAX);
	EQ(mbps_to_ibv_rate(1), IBV_RATE_MAX);
	EQ(ibv_rate_to_mult(IBV_RATE_56_GBPS), -1);
	EQ(ibv_rate_to_mult(IBV_RATE_100_GBPS), -1);
}

/* Structs of the kernel's, each byte of which has a number of its own. */
static void marshalling(void)
{
	struct ib_uverbs_ah_attr kah;
	struct ib_uverbs_qp_attr kqp;
	struct ib_user_path_rec kpath, back;
	struct ibv_sa_path_rec path;
	struct ibv_ah_attr ah;
	struct ibv_qp_attr qp;
	uint8_t *octets = (uint8_t *)&kqp;

	for (size_t i = 0; i < sizeof(kqp); i++)
		octets[i] = (uint8_t)(i + 1);
	memset(&qp, 0, sizeof(qp));
	ibv_copy_qp_attr_from_kern(&qp, &kqp);
	EQ(qp.cur_qp_state, kqp.cur_qp_state);
	EQ(qp.path_mtu, kqp.path_mtu);
	EQ(qp.path_mig_state, kqp.path_mig_state);
	EQ(qp.qkey, kqp.qkey);
	EQ(qp.rq_psn, kqp.rq_psn);
	EQ(qp.sq_psn, kqp.sq_psn);
	EQ(qp.dest_qp_num, kqp.dest_qp_num);
	EQ(qp.qp_access_flags, kqp.qp_access_flags);
	EQ(qp.cap.max_send_wr, kqp.max_send_wr);
	EQ(qp.cap.max_inline_data, kqp.max_inline_data);
	EQ(qp.ah_attr.dlid, kqp.ah_attr.dlid);
	EQ(qp.alt_ah_attr.sl, kqp.alt_ah_attr.sl);
	EQ(qp.pkey_index, kqp.pkey_index);
	EQ(qp.max_rd_atomic, kqp.max_rd_atomic);
	EQ(qp.max_dest_rd_atomic, kqp.max_dest_rd_atomic);
	EQ(qp.min_rnr_timer, kqp.min_rnr_timer);
	EQ(qp.timeout, kqp.timeout);
	EQ(qp.retry_cnt, kqp.retry_cnt);
	EQ(qp.rnr_retry, kqp.rnr_retry);
	EQ(qp.alt_timeout, kqp.alt_timeout);

	octets = (uint8_t *)&kah;
	for (size_t i = 0; i < sizeof(kah); i++)
		octets[i] = (uint8_t)(i + 1);
	memset(&ah, 0, sizeof(ah));
	ibv_copy_ah_attr_from_kern(&ah, &kah);
	EQ(memcmp(ah.grh.dgid.raw, kah.grh.dgid, 16), 0);
	EQ(ah.grh.flow_label, kah.grh.flow_label);
	EQ(ah.grh.sgid_index, kah.grh.sgid_index);
	EQ(ah.grh.hop_limit, kah.grh.hop_limit);
	EQ(ah.grh.traffic_class, kah.grh.traffic_class);
	EQ(ah.dlid, kah.dlid);
	EQ(ah.sl, kah.sl);
	EQ(ah.src_path_bits, kah.src_path_bits);
	EQ(ah.static_rate, kah.static_rate);
	EQ(ah.is_global, kah.is_global);
	EQ(ah.port_num, kah.port_num);

	octets = (uint8_t *)&kpath;
	for (size_t i = 0; i < sizeof(kpath); i++)
		octets[i] = (uint8_t)(i + 1);
	kpath.reversible = 1; /* a truth value on one side */
	kpath.raw_traffic = 1;
	memset(&path, 0, sizeof(path));
	memset(&back, 0, sizeof(back));
	ibv_copy_path_rec_from_kern(&path, &kpath);
	EQ(memcmp(path.dgid.raw, kpath.dgid, 16), 0);
	EQ(memcmp(path.sgid.raw, kpath.sgid, 16), 0);
	EQ(path.dlid, kpath.dlid);
	EQ(path.pkey, kpath.pkey);
	EQ(path.sl, kpath.sl);
	EQ(path.packet_life_time, kpath.packet_life_time);
	ibv_copy_path_rec_to_kern(&back, &path);
	EQ(back.dlid, kpath.dlid);
	EQ(back.slid, kpath.slid);
	EQ(back.flow_label, kpath.flow_label);
	EQ(back.hop_limit, kpath.hop_limit);
	EQ(back.traffic_class, kpath.traffic_class);
	EQ(back.numb_path, kpath.numb_path);
	EQ(back.pkey, kpath.pkey);
	EQ(back.rate, kpath.rate);
	EQ(back.preference, kpath.preference);
}

int main(void)
{
	names();
	rates();
	marshalling();
	return 0;
}

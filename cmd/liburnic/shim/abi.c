/*
 * Compares the structs of engine.h that lie in the program's memory with rdma-core's.
 * There is no code here: a difference is an error of the compiler.
 */
#include "shim.h"

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours " has not the size of " #theirs)
#define SAME(ours, member, theirs, their_member)                                                                       \
	_Static_assert(offsetof(ours, member) == offsetof(theirs, their_member) &&                                     \
			       sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->their_member),                     \
		       #ours "." #member " is not where " #theirs " has " #their_member)

SAME_SIZE(struct urnic_sge, struct ibv_sge);
SAME(struct urnic_sge, addr, struct ibv_sge, addr);
SAME(struct urnic_sge, length, struct ibv_sge, length);
SAME(struct urnic_sge, lkey, struct ibv_sge, lkey);

SAME_SIZE(struct urnic_recv_wr, struct ibv_recv_wr);
SAME(struct urnic_recv_wr, wr_id, struct ibv_recv_wr, wr_id);
SAME(struct urnic_recv_wr, next, struct ibv_recv_wr, next);
SAME(struct urnic_recv_wr, sg_list, struct ibv_recv_wr, sg_list);
SAME(struct urnic_recv_wr, num_sge, struct ibv_recv_wr, num_sge);

SAME_SIZE(struct urnic_send_wr, struct ibv_send_wr);
SAME(struct urnic_send_wr, wr_id, struct ibv_send_wr, wr_id);
SAME(struct urnic_send_wr, next, struct ibv_send_wr, next);
SAME(struct urnic_send_wr, sg_list, struct ibv_send_wr, sg_list);
SAME(struct urnic_send_wr, num_sge, struct ibv_send_wr, num_sge);
SAME(struct urnic_send_wr, opcode, struct ibv_send_wr, opcode);
SAME(struct urnic_send_wr, send_flags, struct ibv_send_wr, send_flags);
SAME(struct urnic_send_wr, imm_or_rkey, struct ibv_send_wr, imm_data);
SAME(struct urnic_send_wr, imm_or_rkey, struct ibv_send_wr, invalidate_rkey);
SAME(struct urnic_send_wr, wr, struct ibv_send_wr, wr);
SAME(struct urnic_send_wr, wr.rdma.remote_addr, struct ibv_send_wr, wr.rdma.remote_addr);
SAME(struct urnic_send_wr, wr.rdma.rkey, struct ibv_send_wr, wr.rdma.rkey);
SAME(struct urnic_send_wr, wr.atomic.remote_addr, struct ibv_send_wr, wr.atomic.remote_addr);
SAME(struct urnic_send_wr, wr.atomic.compare_add, struct ibv_send_wr, wr.atomic.compare_add);
SAME(struct urnic_send_wr, wr.atomic.swap, struct ibv_send_wr, wr.atomic.swap);
SAME(struct urnic_send_wr, wr.atomic.rkey, struct ibv_send_wr, wr.atomic.rkey);
SAME(struct urnic_send_wr, wr.ud.ah, struct ibv_send_wr, wr.ud.ah);
SAME(struct urnic_send_wr, wr.ud.remote_qpn, struct ibv_send_wr, wr.ud.remote_qpn);
SAME(struct urnic_send_wr, wr.ud.remote_qkey, struct ibv_send_wr, wr.ud.remote_qkey);
SAME(struct urnic_send_wr, remote_srqn, struct ibv_send_wr, qp_type.xrc.remote_srqn);
SAME(struct urnic_send_wr, bind_mw.mw, struct ibv_send_wr, bind_mw.mw);
SAME(struct urnic_send_wr, bind_mw.rkey, struct ibv_send_wr, bind_mw.rkey);
SAME(struct urnic_send_wr, bind_mw.bind_info, struct ibv_send_wr, bind_mw.bind_info);
SAME(struct urnic_send_wr, bind_mw.bind_info.mr, struct ibv_send_wr, bind_mw.bind_info.mr);
SAME(struct urnic_send_wr, bind_mw.bind_info.addr, struct ibv_send_wr, bind_mw.bind_info.addr);
SAME(struct urnic_send_wr, bind_mw.bind_info.length, struct ibv_send_wr, bind_mw.bind_info.length);
SAME(struct urnic_send_wr, bind_mw.bind_info.access, struct ibv_send_wr, bind_mw.bind_info.mw_access_flags);
SAME(struct urnic_send_wr, tso.hdr, struct ibv_send_wr, tso.hdr);
SAME(struct urnic_send_wr, tso.hdr_sz, struct ibv_send_wr, tso.hdr_sz);
SAME(struct urnic_send_wr, tso.mss, struct ibv_send_wr, tso.mss);

SAME_SIZE(struct urnic_wc, struct ibv_wc);
SAME(struct urnic_wc, wr_id, struct ibv_wc, wr_id);
SAME(struct urnic_wc, status, struct ibv_wc, status);
SAME(struct urnic_wc, opcode, struct ibv_wc, opcode);
SAME(struct urnic_wc, vendor_err, struct ibv_wc, vendor_err);
SAME(struct urnic_wc, byte_len, struct ibv_wc, byte_len);
SAME(struct urnic_wc, imm_or_rkey, struct ibv_wc, imm_data);
SAME(struct urnic_wc, imm_or_rkey, struct ibv_wc, invalidated_rkey);
SAME(struct urnic_wc, qp_num, struct ibv_wc, qp_num);
SAME(struct urnic_wc, src_qp, struct ibv_wc, src_qp);
SAME(struct urnic_wc, wc_flags, struct ibv_wc, wc_flags);
SAME(struct urnic_wc, pkey_index, struct ibv_wc, pkey_index);
SAME(struct urnic_wc, slid, struct ibv_wc, slid);
SAME(struct urnic_wc, sl, struct ibv_wc, sl);
SAME(struct urnic_wc, dlid_path_bits, struct ibv_wc, dlid_path_bits);

SAME(struct urnic_gid, raw, union ibv_gid, raw);

/* A type 2 window is named to the engine by ibv_mw, and its region by ibv_mr. */
_Static_assert(offsetof(struct ibv_mr, handle) == 32 && sizeof(((struct ibv_mr *)0)->handle) == 4,
	       "the engine does not find the handle of an MR");
_Static_assert(offsetof(struct ibv_mw, handle) == 20 && sizeof(((struct ibv_mw *)0)->handle) == 4,
	       "the engine does not find the handle of an MW");

/* A Send of a UD queue pair names its address handle. */
_Static_assert(offsetof(struct ibv_ah, handle) == 16 && sizeof(((struct ibv_ah *)0)->handle) == 4,
	       "the engine does not find the handle of an AH");

/* What is the same object must begin alike, for programs cast one to the other. */
SAME(struct ibv_cq_ex, handle, struct ibv_cq, handle);
SAME(struct ibv_cq_ex, mutex, struct ibv_cq, mutex);
SAME(struct ibv_cq_ex, async_events_completed, struct ibv_cq, async_events_completed);
SAME(struct ibv_qp_init_attr_ex, sq_sig_all, struct ibv_qp_init_attr, sq_sig_all);
SAME(struct ibv_srq_init_attr_ex, attr, struct ibv_srq_init_attr, attr);
_Static_assert(offsetof(struct ibv_qp_ex, qp_base) == 0, "ibv_qp_ex does not begin with ibv_qp");

/* The table of functions is found from its end: sz is just before the context, which is last. */
_Static_assert(offsetof(struct verbs_context, context) == offsetof(struct verbs_context, sz) + sizeof(size_t),
	       "sz is not where programs look for it");
_Static_assert(offsetof(struct urnic_context, verbs) + sizeof(struct verbs_context) == sizeof(struct urnic_context),
	       "the context is not last");

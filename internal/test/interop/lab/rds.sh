# shellcheck shell=bash
# Sourced by `build`: makes of Linux's rds_rdma one that takes iWARP devices again, which
# Linux gave up. With both of its new parameters off, the default, it is Debian's module.
#   iwarp     takes RNICs: does without what only InfiniBand's devices have, a path record, and asks
#             for all completions of receives, as siw does not signal the solicited ones
#   credits   posts receives before a connection is offered or accepted. Linux posts them
#             afterwards, so that over iWARP the peer's first Send finds none and ends the connection,
#             and the credits that net.rds.ib.flow_control=1 offers are 0

# edit FILE PLACES SCRIPT: changes so many places with sed, or fails. Adjacent lines are one.
# 1-2 are one or two places: kernels differ.
edit() {
    local changed
    cp "$1" before
    sed -i -E "$3" "$1"
    changed=$({ diff before "$1" || true; } | sed -n '/^[0-9]/p' | wc -l)
    [ "$changed" -ge "${2%-*}" ] && [ "$changed" -le "${2#*-}" ] ||
        { echo "$1 is not as expected: $changed places instead of $2 are changed by $3"; return 1; }
}

# patch_rds: in the directory of net/rds.
patch_rds() {
    local device='(cm_id->device|device)->node_type != RDMA_NODE_IB_CA' path='cm_id->route.path_rec'
    edit ib.c 2 "s/$device/!rds_takes(\1)/"
    edit rdma_transport.c 1-2 "s/$device/!rds_takes(\1)/; s/${device/!=/==}/rds_takes(\1)/"
    edit rdma_transport.c 1 "s/^\t*$path\[0\]\.sl =/if ($path) &/"
    edit ib_cm.c 1 "s/ic->i_sl = ic->i_$path->sl;/if (ic->i_$path) &/"
    edit ib_cm.c 1 "s/= $path->([sd]gid\.global\.interface_id);/= $path ? $path->\1 : 0;/"
    edit ib_cm.c 2 's/IB_CQ_SOLICITED\)/rds_iwarp ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED)/'

    # When the queue pair is made, and not when the connection is there.
    edit ib_cm.c 1 's/^\trds_ib_(send|recv)_init_ring\(ic\);/\tif (!rds_credits) &/'
    edit ib_cm.c 1 's/^\trds_ib_recv_init_ack\(ic\);/&\n\tif (rds_credits) rds_ib_early(conn);/'
    # A queue pair that has never been connected does not flush its receives when it is disconnected.
    edit ib_cm.c 1 's/^\t*err = rdma_disconnect\(ic->i_cm_id\);/&\n\tif (rds_credits \&\& ic->i_cm_id->qp) rds_ib_flush_qp(ic->i_cm_id->qp);/'
    edit ib_cm.c 1 's/^#include "ib_mr.h"/&\n#include "early.h"/'
    cat >early.h <<'C'
static void rds_ib_early(struct rds_connection *conn)
{
	struct rds_ib_connection *ic = conn->c_transport_data;

	atomic_set(&ic->i_cq_quiesce, 0);
	rds_ib_send_init_ring(ic);
	rds_ib_recv_init_ring(ic);
	rds_ib_recv_refill(conn, 1, GFP_KERNEL);
}

static void rds_ib_flush_qp(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	ib_modify_qp(qp, &attr, IB_QP_STATE);
}
C
    edit ib.h 1 's/^extern unsigned int rds_ib_sysctl_flow_control;/&\n#include "iwarp.h"/'
    cat >iwarp.h <<'C'
extern bool rds_iwarp, rds_credits;

static inline bool rds_takes(const struct ib_device *d)
{
	return d->node_type == RDMA_NODE_IB_CA || (rds_iwarp && d->node_type == RDMA_NODE_RNIC);
}
C
    cat >>ib.c <<'C'
bool rds_iwarp, rds_credits;
module_param_named(iwarp, rds_iwarp, bool, 0644);
module_param_named(credits, rds_credits, bool, 0644);
C
    rm before
}

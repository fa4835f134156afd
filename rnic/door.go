package rnic

import (
	"context"

	"urnic/internal/door/latch"
	"urnic/internal/door/policy"
)

func init() { latch.Install(behindDoor{}) }

// behindDoor has the operations for the drop-in library alone. Package door
// documents them.
type behindDoor struct{}

func (behindDoor) SetPolicy(cfg *Config, p policy.Policy)      { cfg.policy = p }
func (behindDoor) SetPolicyOfQP(attr *QPAttr, p policy.Policy) { attr.policy = p }
func (behindDoor) SetPolicyOfCQ(attr *CQAttr, p policy.Policy) { attr.policy = p }
func (behindDoor) SetNum(attr *QPAttr, num uint32)             { attr.num = num }
func (behindDoor) Forget(q *QP)                                { q.forget() }
func (behindDoor) RefuseRemote(q *QP, rights Access)           { q.refuseRemote(rights) }
func (behindDoor) StopSending(q *QP) error                     { return q.setStopped("stop sending", true) }

func (behindDoor) ResumeSending(q *QP) error              { return q.setStopped("resume sending", false) }
func (behindDoor) Outstanding(q *QP) int                  { return q.outstanding() }
func (behindDoor) Unpolled(q *QP) int                     { return q.unpolled() }
func (behindDoor) Fire(c *CQ)                             { c.fireArmed() }
func (behindDoor) Await(ctx context.Context, c *CQ) error { return c.await(ctx) }
func (behindDoor) Paired(wc *WC) bool                     { return wc.paired }
func (behindDoor) DrawKey(b Bind) Bind                    { return b.drawKey() }
func (behindDoor) Waiting(r *ConnRequest) bool            { return r.made() && !r.isOver() }
func (behindDoor) Reregister(m *MR, p *PD, mem Memory, a Access) (*MR, error) {
	return m.reregister(p, mem, a)
}

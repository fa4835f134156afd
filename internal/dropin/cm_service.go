//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// udpKey is RDMA_UDP_QKEY, the Q_Key of all queue pairs of RDMA_PS_UDP.
const udpKey = 0x01234567

const (
	// servicePause is the time until a request is sent again. It doubles up to servicePauseMost.
	servicePause     = 100 * time.Millisecond
	servicePauseMost = 2 * time.Second
)

// A ServiceParam is struct urnic_service_param: what a queue pair of datagrams says with a connect or an accept.
type ServiceParam struct {
	PrivateData    *byte
	PrivateDataLen uint32
	QPN            uint32
}

// IDCreateDatagram makes an id of RDMA_PS_UDP: it finds queue pairs of datagrams, and makes no
// connections.
func (e *Engine) IDCreateDatagram(evch Handle, cookie uint64) (Handle, Errno) {
	if why := e.noDatagrams(); why != "" {
		return 0, e.refuse(syscall.EOPNOTSUPP, "create id: RDMA_PS_UDP: %s", why)
	}
	h, number := e.IDCreate(evch, cookie)
	if number == ok {
		number = e.withID(h, func(id *cmID) Errno {
			id.options.datagram = true
			return ok
		})
	}
	return h, number
}

// IDResolveService asks the peer which queue pair serves at its port, in the background. It tells
// cmEstablished with that, or as rdma_cm of Linux does, cmUnreachable: with the status that the peer
// has given, or an errno below 0.
func (e *Engine) IDResolveService(h Handle, p *ServiceParam) Errno {
	if p == nil {
		return syscall.EINVAL
	}
	data, number := e.serviceData(p, datagram.MaxRequestData)
	if number != ok {
		return number
	}
	return e.withID(h, func(id *cmID) Errno {
		if id.state != cmRouteKnown || !id.options.datagram {
			return id.refuse("connect")
		}
		ctx, cancel := context.WithTimeout(e.ctx, e.times.service)
		id.state, id.cancel = cmConnecting, cancel
		peer := id.peer
		conn, err := connectService(id.socket, peer) // now, as to destroy the id closes the socket
		id.background.Go(func() {
			defer cancel()
			var reply datagram.Service
			if err == nil {
				reply, err = e.askService(ctx, conn, data)
			}
			id.mu.Lock()
			defer id.mu.Unlock()
			id.state = cmOver
			ev := CMEvent{Type: cmUnreachable}
			switch {
			case err != nil:
				e.log.printf(logInfo, "connect to %v for datagrams: %v", peer, err)
				if ev.Status = -int32(connErrno(err)); errors.Is(err, syscall.ECONNREFUSED) {
					ev.Status = int32(datagram.ServiceUnsupported)
				}
			case reply.Status != datagram.ServiceOK:
				ev.Status = int32(reply.Status)
			default:
				id.state, ev.Type, ev.QPN, ev.QKey = cmConnected, cmEstablished, reply.QPN, reply.Key
			}
			ev.setPrivateData(reply.Data)
			id.tell(ev)
		})
		return ok
	})
}

// serviceData returns a copy of the private data of a program.
func (e *Engine) serviceData(p *ServiceParam, most uint32) ([]byte, Errno) {
	if p.PrivateDataLen > most || p.PrivateDataLen > 0 && p.PrivateData == nil {
		return nil, e.refuse(syscall.EINVAL, "connect or accept for datagrams: %d bytes of private data: at most %d fit", p.PrivateDataLen, most)
	}
	return append([]byte(nil), unsafe.Slice(p.PrivateData, p.PrivateDataLen)...), ok
}

// connectService returns a connection to the peer that shares the id's socket, and its port.
func connectService(socket *os.File, to endpoint) (net.Conn, error) {
	if err := withFD(socket, func(fd int) error { return unix.Connect(fd, to.sockaddr()) }); err != nil {
		return nil, err
	}
	return net.FileConn(socket)
}

// askService asks until there is an answer, and closes the connection. A peer that refuses may listen soon: see dial.
func (e *Engine) askService(ctx context.Context, conn net.Conn, data []byte) (reply datagram.Service, err error) {
	defer func() { _ = conn.Close() }() // the port stays with the id
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	local, peer := addrPortOf(conn.LocalAddr()), addrPortOf(conn.RemoteAddr())
	record := e.recordService()
	request := datagram.Service{Kind: datagram.ServiceRequest, ID: rand.Uint32(), Data: data}
	out := request.Append(nil)
	patient := time.Now().Add(e.times.refused)
	for pause := servicePause; ; pause = min(2*pause, servicePauseMost) {
		record(local, peer, out)
		_, err := conn.Write(out)
		if err == nil {
			reply, err = awaitReply(conn, request.ID, time.Now().Add(pause))
		}
		switch {
		case err == nil:
			record(peer, local, reply.Append(nil))
			return reply, nil
		case ctx.Err() != nil:
			return reply, syscall.ETIMEDOUT
		case errors.Is(err, os.ErrDeadlineExceeded):
		case errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(patient):
			<-time.After(servicePause / 4)
		default:
			return reply, err
		}
		if ctx.Err() != nil { // after a deadline that was set late
			return reply, syscall.ETIMEDOUT
		}
	}
}

// recordService returns what records messages of service resolution.
func (e *Engine) recordService() func(from, to netip.AddrPort, b []byte) {
	w := e.recorder()
	return func(from, to netip.AddrPort, b []byte) {
		if w != nil {
			w.Datagram(from, to, b)
			_ = w.Flush() // there are few, and the program may end soon; the error is kept
		}
	}
}

func addrPortOf(a net.Addr) netip.AddrPort {
	if u, isUDP := a.(*net.UDPAddr); isUDP {
		return u.AddrPort()
	}
	return netip.AddrPort{}
}

// awaitReply waits for the reply to a request. Whatever else comes is not looked at.
func awaitReply(conn net.Conn, id uint32, until time.Time) (datagram.Service, error) {
	if err := conn.SetReadDeadline(until); err != nil {
		return datagram.Service{}, err
	}
	var b [512]byte
	for {
		n, err := conn.Read(b[:])
		if err != nil {
			return datagram.Service{}, err
		}
		if s, err := datagram.ParseService(b[:n]); err == nil && s.Kind == datagram.ServiceReply && s.ID == id {
			return s, nil
		}
	}
}

// A serviceKey names a request: it may come several times.
type serviceKey struct {
	from netip.AddrPort
	id   uint32
}

// A serviceRequest is one that waits for the program's answer.
type serviceRequest struct {
	at  *serviceListener
	key serviceKey
	to  netip.Addr // the address to which it was sent
}

// answer sends the reply.
func (r *serviceRequest) answer(s datagram.Service) error {
	s.Kind, s.ID = datagram.ServiceReply, r.key.id
	return r.at.answer(r, s.Append(nil))
}

// IDServe answers a request of an id of RDMA_PS_UDP with a queue pair's number, and tells nothing, as there
// is no connection.
func (e *Engine) IDServe(h Handle, p *ServiceParam) Errno {
	if p == nil {
		return syscall.EINVAL
	}
	data, number := e.serviceData(p, datagram.MaxReplyData)
	if number != ok {
		return number
	}
	return e.withID(h, func(id *cmID) Errno {
		if id.state != cmAsked || id.service == nil || p.QPN > 0xffffff {
			return id.refuse("accept")
		}
		err := id.service.answer(datagram.Service{QPN: p.QPN, Key: udpKey, Data: data})
		id.state, id.service = cmConnected, nil
		if err != nil {
			return e.refuse(errno(err), "accept for datagrams: %v", err)
		}
		return ok
	})
}

// refuseService answers a request with a rejection. The caller holds mu.
func (id *cmID) refuseService(data []byte) Errno {
	if len(data) > datagram.MaxReplyData {
		return syscall.EINVAL
	}
	err := id.service.answer(datagram.Service{Status: datagram.ServiceRejected, Data: data})
	id.state, id.service = cmOver, nil
	if err != nil {
		return id.engine.refuse(errno(err), "reject: %v", err)
	}
	return ok
}

// listenForServices has a bound id of RDMA_PS_UDP take requests. The caller holds mu.
func (id *cmID) listenForServices() Errno {
	l, err := newServiceListener(id.socket, id.local.port, id.engine.recordService())
	if err != nil {
		return id.engine.fail(fmt.Errorf("listen for datagrams: %w", err))
	}
	_ = id.socket.Close() // the listener has it
	id.socket, id.services, id.state = nil, l, cmListening
	id.background.Go(func() { l.serve(id.offerService) })
	return ok
}

// offerService gives a request an id and reports it, if there is room.
func (id *cmID) offerService(r *serviceRequest, data []byte) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	child := id.newChild()
	if child == nil {
		return false
	}
	child.mu.Lock()
	defer child.mu.Unlock()
	child.state, child.service, child.options = cmAsked, r, id.options
	child.local = endpointIn(netip.AddrPortFrom(r.to, id.local.port), id.local.family())
	child.peer = endpointIn(r.key.from, id.local.family())
	id.pending++
	ev := CMEvent{Type: cmConnectRequest}
	ev.setPrivateData(data)
	id.tellOf(ev, child)
	return true
}

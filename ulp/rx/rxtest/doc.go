// Package rxtest tests an endpoint of Rx: what is true of calls, whatever carries them.
//
//	func TestSuite(t *testing.T) {
//		rxtest.Run(t, func(t testing.TB, services []rx.Service) (client, server rx.Endpoint) {
//			…
//		})
//	}
package rxtest

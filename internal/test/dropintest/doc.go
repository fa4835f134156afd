// Package dropintest shows that programs which others wrote and built, Debian's own,
// run on urnic by liburnic, unchanged. Its tests want the build tag dropin; `make
// dropin` runs them. They need Debian's packages ibverbs-utils, rdmacm-utils and
// perftest, and a C compiler with rdma-core's headers; what is missing makes them fail.
//
// The programs run in network namespaces that the tests make, one for each test, with
// a loopback interface only, as a user without privileges, started by `urnic run`
// from an installation of their own. Each is tried in both modes: preloaded over the
// distribution's libraries, and in place of them.
package dropintest

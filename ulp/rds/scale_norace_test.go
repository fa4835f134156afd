//go:build !race

package rds

// manyPeers is how many peers one node must hold.
const manyPeers = 1000

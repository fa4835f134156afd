//go:build race

package rds

// manyPeers is how many peers one node holds here: under the race detector each takes ten
// times as long, and the node's memory is not what it is without.
const manyPeers = 100

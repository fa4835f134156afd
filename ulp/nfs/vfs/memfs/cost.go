package memfs

// What things cost of Options.MaxBytes, in bytes of memory, besides the data. They are what
// Go's allocator gives for them on a 64-bit machine, with their places in maps and slices,
// which have room to grow. The root costs nothing.
const (
	nodeCost = 288 // a node with its handle, and its place in the table of files
	fileCost = 176 // the content of a file, whose first page makes a map with room for eight
	dirCost  = 160 // that of an empty directory
	entryMin = 144 // a name in a directory without its bytes
	pageCost = 112 // a page without its data
)

// cost returns what a node costs without the pages of a file and the names of a directory.
func (n *node) cost() int {
	c := nodeCost + len(n.target)
	switch {
	case n.file != nil:
		c += fileCost
	case n.dir != nil:
		c += dirCost
	}
	return c
}

// nameCost returns what a name costs.
func nameCost(name string) int { return entryMin + len(name) }

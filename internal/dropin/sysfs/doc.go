// Package sysfs is what Linux shows of an RDMA device in /sys/class and in /dev/infiniband,
// as data: [Tree] makes files with their contents out of what a device is like. The files are
// those of Documentation/ABI/stable/sysfs-class-infiniband, as the kernel prints them.
//
// A tree has the layout of /sys (class/infiniband/NAME/…), so that programs which can be told
// where sysfs is take it as it is. Beside class it has dev/infiniband, which stands for
// /dev/infiniband.
//
// The package has no I/O. Package sysfsdir writes trees into directories.
package sysfs

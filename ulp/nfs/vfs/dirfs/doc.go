// Package dirfs is a vfs.FS of a directory of the machine.
//
//	fs, err := dirfs.New("/srv/data", dirfs.Options{})
//	if err != nil {
//		return err
//	}
//	defer fs.Close()
//
// # Linux
//
// A handle holds a file's inode number and its generation, from the filesystem and from the
// time of birth. So it survives renaming, and the process that issued it. The names that
// clients have looked up give the position of each file. A handle of an earlier process is
// found by open_by_handle_at where that is permitted (as root), and by a walk through the
// tree otherwise. If clients move directories so often that no walk can find out whether a
// file is there, the answer is ErrTryLater.
//
// Whatever a handle says, a file is opened only by way of its names, one component at a
// time from the root down, following no symbolic link and entering no other mounted
// filesystem (openat2), and used only if it is the one that the handle means. Thus nothing
// outside of the tree is reached. What the machine's own users move out of the tree while
// it is served can be reached for a second more. Where openat2 is missing, before Linux
// 5.6, or forbidden, as by the rules of some containers, openat stands in for it, and the
// mount of what it has opened is compared to that of the root.
//
// Some descriptors stay open, so that not each Read opens the file anew.
//
// Renames, new names, and removals are on stable storage when the call returns, and data
// too if that is asked for, unless Options.Async is set.
//
// All is done with the rights of the process. Only root can give files to others.
//
// # Other systems
//
// There the tree is an os.Root: symbolic links are not followed by us and lead nowhere
// outside by os.Root's rules, handles live as long as the process, and what os.Root can't do
// (devices, owners of symbolic links) is ErrNotSupported.
package dirfs

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A partFile is a file that gets its name when it is whole.
type partFile struct {
	*outputFile
	name, dir string
}

// createPart creates one in a directory.
func createPart(dir string, perm fs.FileMode) (*partFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, "."+rand.Text()[:12]+".part"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, alwaysTell(err)
	}
	return &partFile{&outputFile{f}, f.Name(), dir}, nil
}

// commit closes the file and gives it a name in its directory.
func (p *partFile) commit(name string) error {
	err := p.Close()
	if err == nil {
		err = alwaysTell(os.Rename(p.name, filepath.Join(p.dir, name)))
	}
	if err != nil {
		return errors.Join(err, alwaysTell(os.Remove(p.name)))
	}
	return nil
}

// discard removes the file.
func (p *partFile) discard() error {
	return errors.Join(p.Close(), alwaysTell(os.Remove(p.name)))
}

// numberedName returns the first free name from a number on, and that number.
func numberedName(dir string, number int) (string, int, error) {
	for ; ; number++ {
		name := fmt.Sprintf("%04d", number)
		taken, err := exist(dir, name, name+".part")
		if err != nil || !taken {
			return name, number, err
		}
	}
}

// freeName returns a name, with a number behind it if there is a file of that name.
func freeName(dir, name string) (string, error) {
	free := name
	for i := 2; ; i++ {
		taken, err := exist(dir, free)
		if err != nil || !taken {
			return free, err
		}
		free = fmt.Sprintf("%s-%d", name, i)
	}
}

// exist reports whether a directory has a file of one of some names.
func exist(dir string, names ...string) (bool, error) {
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

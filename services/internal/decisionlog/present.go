package decisionlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// canGoOn reports whether records of the format may be appended to the file: what it has is
// in the same format, and ends with a whole record.
func canGoOn(name, format string) (bool, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err == nil, err // A named pipe has nothing that could be read.
	}
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	begin := bufio.NewReader(file)
	if isBinary(begin) != (format == formatBinary) {
		return false, nil
	}
	if format == formatBinary {
		return endsWithRecord(begin)
	}
	return endsWithLine(file, info.Size())
}

func endsWithLine(file io.ReaderAt, size int64) (bool, error) {
	last := make([]byte, 1)
	_, err := file.ReadAt(last, size-1)
	return last[0] == '\n', err
}

// endsWithRecord reads the whole file, because the end of a binary record looks like anything.
func endsWithRecord(in *bufio.Reader) (bool, error) {
	for {
		length, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil || length > maxRecord {
			return false, readError(err)
		}
		if _, err := in.Discard(int(length)); err != nil {
			return false, readError(err)
		}
	}
}

// readError returns nil for errors of what is read: a record is cut, or is none.
func readError(err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		return err
	}
	return nil
}

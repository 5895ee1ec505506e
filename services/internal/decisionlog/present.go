package decisionlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// canGoOn reports whether records of the format may be appended to the file: what it has is
// in the same format, and ends with a whole record.
func canGoOn(name, format string) (bool, error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err == nil, err
	}
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
			return false, ignoreCut(err)
		}
		if _, err := in.Discard(int(length)); err != nil {
			return false, ignoreCut(err)
		}
	}
}

// ignoreCut returns nil for the errors of a cut record.
func ignoreCut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

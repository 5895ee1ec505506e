package decisionlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxRecord bounds a record: a request and a response of 16 MiB each, which JSON makes
// three times as long.
const maxRecord = 96 << 20

// errNoRecord says that the log has something else.
var errNoRecord = errors.New("expected a jobpolicy.v1.DecisionRecord, in JSON or with its length before it")

// otherLine matches lines in JSON that the executor writes beside its records: of its log,
// and spans on the console.
var otherLine = regexp.MustCompile(`^\{"(time":"[^"]*","level|Name)":`)

// Read returns the records of a log in either format, in order. It ends at the first
// error, which says which record it concerns. If the last record is cut off, as after a
// kill, the error wraps io.ErrUnexpectedEOF.
//
// Between JSON records there may be other lines: kubectl logs has those of standard error,
// too. Read skips them.
func Read(log io.Reader) iter.Seq2[*jobpolicyv1.DecisionRecord, error] {
	in := bufio.NewReaderSize(log, 1<<20)
	next := nextLine
	if isBinary(in) {
		next = nextDelimited
	}
	_, err := in.Peek(1)
	empty := errors.Is(err, io.EOF)
	return func(yield func(*jobpolicyv1.DecisionRecord, error) bool) {
		for n := 1; ; n++ {
			record, err := next(in)
			if errors.Is(err, io.EOF) && (n > 1 || empty) {
				return
			}
			if errors.Is(err, io.EOF) {
				err = errNoRecord
			}
			if err != nil {
				yield(nil, fmt.Errorf("record %d: %w", n, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// isBinary reports whether a log begins with a binary record: its length, the tag of its
// time and the time's length, and the tag of the seconds, which no text has.
func isBinary(in *bufio.Reader) bool {
	begin, _ := in.Peek(binary.MaxVarintLen64 + 3) // Fewer bytes if the log is shorter.
	_, n := binary.Uvarint(begin)
	return n > 0 && n+2 < len(begin) && begin[n] == '\n' && begin[n+2] == '\b'
}

func nextDelimited(in *bufio.Reader) (*jobpolicyv1.DecisionRecord, error) {
	record := &jobpolicyv1.DecisionRecord{}
	err := protodelim.UnmarshalOptions{MaxSize: maxRecord}.UnmarshalFrom(in, record)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errNoRecord, err)
	}
	return record, err
}

func nextLine(in *bufio.Reader) (*jobpolicyv1.DecisionRecord, error) {
	line, err := recordLine(in)
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return nil, fmt.Errorf("the line has no end: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, err
	}
	record := &jobpolicyv1.DecisionRecord{}
	if err := protojson.Unmarshal(line, record); err != nil {
		return nil, fmt.Errorf("expected the JSON of a jobpolicy.v1.DecisionRecord: %w", err)
	}
	return record, nil
}

// recordLine skips lines that are no records. At the end of the log it returns io.EOF,
// with what there is of a record.
func recordLine(in *bufio.Reader) ([]byte, error) {
	for {
		line, err := in.ReadBytes('\n')
		if bytes.HasPrefix(line, []byte(`{"`)) && !otherLine.Match(line) {
			return line, err
		}
		if err != nil {
			return nil, err
		}
	}
}

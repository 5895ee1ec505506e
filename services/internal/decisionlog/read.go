package decisionlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/encoding/protojson"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// maxRecord bounds a record: a request and a response of 16 MiB each, which JSON makes
// three times as long.
const maxRecord = 96 << 20

// Read returns the records of a log in either format, in order. It ends at the first
// error, which says which record it concerns. If the last record is cut off, as after a
// kill, the error wraps io.ErrUnexpectedEOF.
func Read(log io.Reader) iter.Seq2[*jobpolicyv1.DecisionRecord, error] {
	in := bufio.NewReaderSize(log, 1<<20)
	next := nextDelimited
	// A binary record begins with its length and the tag of its time, which is no quotation
	// mark.
	if begin, err := in.Peek(2); err == nil && string(begin) == `{"` {
		next = nextLine
	}
	return func(yield func(*jobpolicyv1.DecisionRecord, error) bool) {
		for n := 1; ; n++ {
			record, err := next(in)
			if errors.Is(err, io.EOF) {
				return
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

func nextDelimited(in *bufio.Reader) (*jobpolicyv1.DecisionRecord, error) {
	record := &jobpolicyv1.DecisionRecord{}
	err := protodelim.UnmarshalOptions{MaxSize: maxRecord}.UnmarshalFrom(in, record)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("expected a jobpolicy.v1.DecisionRecord, in JSON or with its length before it: %w", err)
	}
	return record, err
}

func nextLine(in *bufio.Reader) (*jobpolicyv1.DecisionRecord, error) {
	line, err := in.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("the line has no end: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return nil, err
	}
	record := &jobpolicyv1.DecisionRecord{}
	if err := protojson.Unmarshal(line, record); err != nil {
		return nil, fmt.Errorf("expected the JSON of a jobpolicy.v1.DecisionRecord: %w", err)
	}
	return record, nil
}

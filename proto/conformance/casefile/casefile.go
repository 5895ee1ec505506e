// Package casefile writes files of cases, as package conformance holds them. The tests
// of an engine use it.
package casefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/proto/conformance"
)

// maxCaseBytes leaves out requests that are only there to be large.
const maxCaseBytes = 64 << 10

// A File collects requests and what an engine makes of them.
type File struct {
	lines [][]byte
	err   error
}

// Add adds a request and its response, as far as they are compared.
func (f *File) Add(req, response proto.Message) { f.AddNamed("", req, response) }

// AddNamed adds a case with a name.
func (f *File) AddNamed(name string, req, response proto.Message) {
	f.append(conformance.Case{Name: name, Request: f.json(req), Response: f.json(conformance.Comparable(response))})
}

// RefuseNamed adds a request that is invalid in a field, with a name.
func (f *File) RefuseNamed(name string, req proto.Message, field string) {
	f.append(conformance.Case{Name: name, Request: f.json(req), Error: invalid(field)})
}

// Refuse adds a request that is invalid in a field. It leaves out what JSON cannot
// express, such as an invalid time: refuses reports whether the request is refused for that
// field once it has been written and read again.
func (f *File) Refuse(req proto.Message, field string, refuses func(proto.Message) bool) {
	request, err := protojson.Marshal(req)
	if err != nil || len(request) > maxCaseBytes {
		return
	}
	read := req.ProtoReflect().New().Interface()
	f.err = errors.Join(f.err, protojson.Unmarshal(request, read))
	if !refuses(read) {
		return
	}
	f.append(conformance.Case{Request: request, Error: invalid(field)})
}

func invalid(field string) *conformance.Error {
	return &conformance.Error{Code: "INVALID_ARGUMENT", Reason: "INVALID_REQUEST", Field: field}
}

func (f *File) json(m proto.Message) json.RawMessage {
	text, err := protojson.Marshal(m)
	f.err = errors.Join(f.err, err)
	return text
}

// append adds a line, unless it is there.
func (f *File) append(c conformance.Case) {
	line, err := json.Marshal(c)
	f.err = errors.Join(f.err, err)
	if !slices.ContainsFunc(f.lines, func(other []byte) bool { return bytes.Equal(other, line) }) {
		f.lines = append(f.lines, line)
	}
}

// Check compares the cases with the file, or writes it. Without cases there is no file.
func (f *File) Check(file string, write bool) error {
	if f.err != nil || len(f.lines) == 0 {
		return f.err
	}
	text := append(bytes.Join(f.lines, []byte("\n")), '\n')
	if write {
		return os.WriteFile(file, text, 0o644)
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, text) {
		return errors.Join(fmt.Errorf("%s is out of date: make cases writes it", file), err)
	}
	return nil
}

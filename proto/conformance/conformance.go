// Package conformance holds what an engine must answer: requests of the contract with
// their answers, as JSON that any language reads. The command jobpolicy-conformance
// puts them to an engine.
//
// A folder has the cases of the method of its name. Each line of a file is a case: a
// request, and either the response or the error that it gets. Some cases have a name,
// which says what they show.
//
//	{"request": {…}, "response": {…}}
//	{"name": "no time", "request": {…}, "error": {"code": "INVALID_ARGUMENT", "reason": "INVALID_REQUEST", "field": "now"}}
//
// Requests and responses are written as protobuf's JSON. Texts for people are not
// compared, because an engine may word them as it likes: see Comparable. Of an error,
// the field is one of those that google.rpc.BadRequest must name.
//
// The files with names are written by hand, without the answers; all others follow from
// the engine's tests. make cases writes the answers and the other files, and the tests
// fail when they are out of date.
package conformance

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"

	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// Files are the cases, by folder of their method.
//
//go:embed */*.jsonl
var Files embed.FS

// digestBytes is the length of a digest.
const digestBytes = 8

// Digest is a digest of all cases: of what the engine of this version answers to them.
func Digest() string {
	sum := sha256.New()
	err := fs.WalkDir(Files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := Files.ReadFile(file)
		fmt.Fprintln(sum, file, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		panic(err) // Cannot be: the files are part of the program.
	}
	return hex.EncodeToString(sum.Sum(nil)[:digestBytes])
}

// Case is one line of a file. It has either a Response or an Error.
type Case struct {
	// Name says what the case shows; it may be empty.
	Name string `json:"name,omitempty"`
	// Request is the message as protobuf's JSON, and so is Response.
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// Error is how a request is refused.
type Error struct {
	// Code is the gRPC status code by its name.
	Code string `json:"code"`
	// Reason is that of google.rpc.ErrorInfo.
	Reason string `json:"reason"`
	// Field is one that google.rpc.BadRequest names.
	Field string `json:"field"`
}

// someText stands for a text that an engine may word as it likes.
const someText = "…"

// Comparable returns a response without explanations and without the descriptions of
// violations. For a schedule that cannot be read it keeps only that fact.
func Comparable(response proto.Message) proto.Message {
	response = proto.Clone(response)
	switch r := response.(type) {
	case *jobpolicyv1.DecideJobResponse:
		r.Explanation = nil
	case *jobpolicyv1.DecideCronJobResponse:
		r.Explanation = nil
	case *jobpolicyv1.CheckJobStatusResponse:
		for _, check := range r.GetChecks() {
			for _, v := range check.GetViolations() {
				v.Description = ""
			}
		}
	case *jobpolicyv1.ListScheduledRunsResponse:
		for _, runs := range r.GetRuns() {
			if runs.GetError() != "" {
				runs.Error = someText
			}
		}
	}
	return response
}

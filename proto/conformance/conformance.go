// Package conformance holds what an engine must answer: requests of the contract with
// their answers, as JSON that any language reads. The command jobpolicy-conformance
// puts them to an engine.
//
// The folders decide_job and decide_cron_job have a file for each scenario of the
// engine's own tests. Each line is a case: a request, and either the response or the error that it gets.
//
//	{"request": {…}, "response": {…}}
//	{"request": {…}, "error": {"code": "INVALID_ARGUMENT", "reason": "INVALID_REQUEST", "field": "now"}}
//
// Requests and responses are written as protobuf's JSON. A response has no
// explanation: it is for people, and an engine may word it as it likes. Of an error,
// the field is one of those that google.rpc.BadRequest must name.
//
// The files follow from the engine's tests: make cases writes them, and the tests fail
// when they are out of date.
package conformance

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
)

// Files are the cases, by folder of their method.
//
//go:embed decide_job decide_cron_job
var Files embed.FS

// digestBytes is how much of a digest tells sets of rules apart.
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

// Case is one line of a file.
type Case struct {
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

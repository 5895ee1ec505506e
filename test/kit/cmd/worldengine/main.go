// Worldengine is the engine of its version for worlds of another version (test/simulated/skew).
//
// It reads requests from standard input and writes answers to standard output, each with
// a byte before it and its length as four bytes. The byte of a request is J for a Job
// and C for a CronJob; that of an answer is its gRPC code. The answer of another code than
// OK is a text.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		var header [5]byte
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return // The world has ended.
		}
		request := make([]byte, binary.BigEndian.Uint32(header[1:]))
		if _, err := io.ReadFull(in, request); err != nil {
			log.Fatal(err)
		}
		code, answer := decide(header[0], request)
		header[0] = byte(code)
		binary.BigEndian.PutUint32(header[1:], uint32(len(answer)))
		if err := errors.Join(write(out, header[:]), write(out, answer), out.Flush()); err != nil {
			log.Fatal(err)
		}
	}
}

func write(to io.Writer, data []byte) error {
	_, err := to.Write(data)
	return err
}

func decide(kind byte, request []byte) (codes.Code, []byte) {
	if kind == 'C' {
		return answer(request, &jobpolicyv1.DecideCronJobRequest{}, cronjob.Decide)
	}
	return answer(request, &jobpolicyv1.DecideJobRequest{}, engine.DecideJob)
}

func answer[Req, Resp proto.Message](request []byte, into Req, decide func(Req) (Resp, error)) (codes.Code, []byte) {
	if err := proto.Unmarshal(request, into); err != nil {
		return codes.InvalidArgument, []byte(err.Error())
	}
	decision, err := decide(into)
	if _, ok := errors.AsType[*engine.InvalidRequestError](err); ok {
		return codes.InvalidArgument, []byte(err.Error())
	}
	if _, ok := errors.AsType[*engine.UnsupportedError](err); ok {
		return codes.Unimplemented, []byte(err.Error())
	}
	var data []byte
	if err == nil {
		data, err = proto.Marshal(decision)
	}
	if err != nil {
		return codes.Internal, []byte(err.Error())
	}
	return codes.OK, data
}

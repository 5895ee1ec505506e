package world

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/engine/cronjob"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// decideJob and decideCronJob are the engine: this version's, or the program that
// engineVariable names (test/kit/cmd/worldengine of another version).
var (
	decideJob     = engine.DecideJob
	decideCronJob = cronjob.Decide
)

const engineVariable = "JOBPOLICY_WORLD_ENGINE"

// The program must not belong to a bubble, so it is started before there is one.
func init() {
	program := os.Getenv(engineVariable)
	if program == "" {
		return
	}
	o, err := startOtherEngine(program)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", engineVariable, err))
	}
	decideJob = func(req *jobpolicyv1.DecideJobRequest) (*jobpolicyv1.DecideJobResponse, error) {
		resp := &jobpolicyv1.DecideJobResponse{}
		return resp, o.ask('J', req, resp)
	}
	decideCronJob = func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
		resp := &jobpolicyv1.DecideCronJobResponse{}
		return resp, o.ask('C', req, resp)
	}
}

// An otherEngine answers one question at a time.
type otherEngine struct {
	mu  sync.Mutex
	in  io.Writer
	out io.Reader
}

// startOtherEngine starts the program, which ends when this process does.
func startOtherEngine(program string) (*otherEngine, error) {
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, err
	}
	return &otherEngine{in: in, out: out}, cmd.Start()
}

func (o *otherEngine) ask(kind byte, req, resp proto.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	if _, err := o.in.Write(append(header, body...)); err != nil {
		return err
	}
	if _, err := io.ReadFull(o.out, header); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint32(header[1:]))
	if _, err := io.ReadFull(o.out, answer); err != nil {
		return err
	}
	if code := codes.Code(header[0]); code != codes.OK {
		return status.Error(code, string(answer))
	}
	return proto.Unmarshal(answer, resp)
}

// statusOf is the status that an engine's error has.
func statusOf(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return toStatus(err)
}

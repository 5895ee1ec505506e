package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"jobpolicy.dev/deploy/local/must"
)

// serveQueues starts KEDA's external scaler of all scenarios, and returns its address. The trigger of a ScaledJob names a folder.
// Whenever KEDA polls, the scaler adds a byte to the file polls of this folder, waits until there is a file next, which it removes, and
// says that as many messages wait as the file messages says. So a scenario decides when KEDA polls, and what it sees then.
//
// It reads and writes the messages of KEDA's externalscaler.proto by field number: KEDA's module is not one of this module's.
func serveQueues(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(answerKEDA))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// rawCodec leaves messages as they are on the wire.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	raw, ok := message.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%T is no *[]byte", message)
	}
	return *raw, nil
}

func (rawCodec) Unmarshal(data []byte, message any) error {
	raw, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is no *[]byte", message)
	}
	*raw = bytes.Clone(data)
	return nil
}

func answerKEDA(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(stream)
	answer, err := answerTo(stream.Context(), path.Base(method), request)
	if err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}

// metricName is the name of the only metric.
const metricName = "messages"

// answerTo encodes the answer to a request. A poll is GetMetricSpec, GetMetrics, then IsActive.
func answerTo(ctx context.Context, method string, request []byte) ([]byte, error) {
	switch method {
	case "GetMetricSpec": // one message for each Job
		return embedded(metric(1)), nil
	case "GetMetrics":
		folder := folderOf(find(request, 1))
		if err := mayGoOn(ctx, folder); err != nil {
			return nil, err
		}
		waiting, err := waitingMessages(folder)
		return embedded(metric(waiting)), err
	case "IsActive":
		waiting, err := waitingMessages(folderOf(request))
		return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), protowire.EncodeBool(waiting > 0)), err
	}
	return nil, status.Error(codes.Unimplemented, method)
}

// cacheDelay is for KEDA's cache, from which it counts Jobs: it shows then what a scenario has seen before it let KEDA poll.
const cacheDelay = time.Second

// mayGoOn says that KEDA polls, and waits until the scenario lets it go on.
func mayGoOn(ctx context.Context, folder string) error {
	if err := addByte(filepath.Join(folder, "polls")); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done(): // KEDA begins to poll anew.
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if err := os.Remove(filepath.Join(folder, "next")); err == nil {
			break
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	time.Sleep(cacheDelay)
	return nil
}

// metric is a MetricSpec, or a MetricValue: both have a name, and a number.
func metric(number uint64) []byte {
	named := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), metricName)
	return protowire.AppendVarint(protowire.AppendTag(named, 2, protowire.VarintType), number)
}

// embedded is a message whose first field is another one.
func embedded(message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), message)
}

// folderOf is the folder that a ScaledObjectRef names: its field 3 is a map.
func folderOf(reference []byte) string {
	folder := ""
	each(reference, func(number protowire.Number, entry []byte) {
		if number == 3 && string(find(entry, 1)) == "folder" {
			folder = string(find(entry, 2))
		}
	})
	return folder
}

// find is the value of a field that is a string or a message; nil: the message does not have it.
func find(message []byte, wanted protowire.Number) (found []byte) {
	each(message, func(number protowire.Number, value []byte) {
		if number == wanted {
			found = value
		}
	})
	return found
}

// each calls for each field that is a string or a message, up to the first one that cannot be read.
func each(message []byte, call func(protowire.Number, []byte)) {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[protowire.SizeTag(number):size])
			call(number, value)
		}
		message = message[size:]
	}
}

func waitingMessages(folder string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(folder, "messages"))
	if err != nil {
		return 0, status.Error(codes.FailedPrecondition, err.Error())
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

func addByte(file string) error {
	open, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = open.WriteString(".")
	return errors.Join(err, open.Close())
}

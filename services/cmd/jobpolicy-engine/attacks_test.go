package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testenv"
)

// maxMessage is the contract's limit.
const maxMessage = 16 << 20

// An attack does its worst, and returns when it has. What it holds open it holds
// until the next time, or until the attacker ends.
type attack func(t *testing.T, e *attacker)

var quickAttacks = map[string]attack{
	"a request of 8 MiB": func(t *testing.T, e *attacker) { largeRequests(t, e, 1) },
	"60 unfinished calls": func(t *testing.T, e *attacker) {
		unfinishedCalls(t, e, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName)
	},
	"60 unfinished calls of health":      func(t *testing.T, e *attacker) { unfinishedCalls(t, e, healthv1.Health_Check_FullMethodName) },
	"a request of one name of 10 MB":     longName,
	"25,000 small answers":               smallAnswers,
	"as many rows as there may be":       manyRows,
	"a request that is large if decoded": manyEmptyRows,
	"1,000 calls of odd method names":    oddNames,
}

var slowAttacks = map[string]attack{
	"four requests of 8 MiB":                      func(t *testing.T, e *attacker) { largeRequests(t, e, 4) },
	"a slow reader with 400 answers":              unreadAnswers,
	"1,000 connections":                           manyConnections,
	"1,000 connections without a word":            silentConnections,
	"100 calls at a time":                         manyCalls,
	"100 dense calls at a time":                   denseCalls,
	"1,000 readers of /metrics that read nothing": unreadMetrics,
}

// largeRequest is a valid request of almost 8 MiB, which takes about all memory that one caller may have for decoded requests.
var largeRequest = sync.OnceValues(func() ([]byte, error) {
	group := &jobpolicyv1.ScaleDown{Excess: 1}
	for i := 0; proto.Size(group) < maxMessage/2150; i++ {
		group.Pods = append(group.Pods, &jobpolicyv1.ActivePod{
			Uid: binary.BigEndian.AppendUint64(make([]byte, 16), uint64(i)), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING,
		})
	}
	return proto.Marshal(&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: slices.Repeat([]*jobpolicyv1.ScaleDown{group}, 1000)})
})

// send sends bytes as they are.
func send(ctx context.Context, conn *grpc.ClientConn, method string, message []byte) error {
	return conn.Invoke(ctx, method, message, new([]byte), grpc.ForceCodecV2(testenv.BytesCodec{}))
}

func largeRequests(t *testing.T, e *attacker, n int) {
	message, err := largeRequest()
	if err != nil {
		t.Error(err)
		return
	}
	conn := e.dial(t)
	var wait sync.WaitGroup
	var answered atomic.Int32
	for range n {
		wait.Go(func() {
			err := send(e.ctx, conn, jobpolicyv1grpc.PolicyService_ChoosePodsToDelete_FullMethodName, message)
			if err == nil {
				answered.Add(1)
			} else {
				t.Logf("a large request: %v", err)
			}
		})
	}
	wait.Wait()
	if answered.Load() == 0 && e.ctx.Err() == nil {
		t.Errorf("none of %d requests of %d bytes is answered", n, len(message))
	}
}

// unfinished is the body of a call of which the last byte never comes.
func unfinished(ctx context.Context) io.Reader {
	header := binary.BigEndian.AppendUint32([]byte{0}, maxMessage)
	return io.MultiReader(bytes.NewReader(header), bytes.NewReader(make([]byte, maxMessage-1)), waiting{ctx})
}

type waiting struct{ context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.Done()
	return 0, w.Err()
}

func unfinishedCalls(t *testing.T, e *attacker, method string) {
	transport := &http.Transport{TLSClientConfig: e.tls, ForceAttemptHTTP2: true}
	e.hold(transport.CloseIdleConnections)
	var refused atomic.Int32
	for range 60 {
		go func() {
			req, err := http.NewRequestWithContext(e.ctx, http.MethodPost, "https://"+e.Address+method, unfinished(e.ctx))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/grpc")
			req.Header.Set("Te", "trailers")
			if resp, err := transport.RoundTrip(req); err == nil {
				_ = resp.Body.Close()
				refused.Add(1)
			}
		}()
	}
	// Two may have a caller's share of memory, and the others are refused.
	e.await(t, func() error {
		if n := refused.Load(); n < 58 {
			return fmt.Errorf("%d calls refused", n)
		}
		return nil
	})
}

func unreadAnswers(t *testing.T, e *attacker) {
	before, err := e.handled()
	if err != nil {
		t.Error(err)
		return
	}
	// The answer to 1,000 groups names 20 pods of each.
	group := &jobpolicyv1.ScaleDown{Excess: 20}
	for i := range 20 {
		group.Pods = append(group.Pods, &jobpolicyv1.ActivePod{Uid: testenv.UID(byte(i)), Phase: jobpolicyv1.PodPhase_POD_PHASE_RUNNING})
	}
	message, err := proto.Marshal(&jobpolicyv1.ChoosePodsToDeleteRequest{Jobs: slices.Repeat([]*jobpolicyv1.ScaleDown{group}, 1000)})
	if err != nil {
		t.Error(err)
		return
	}
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	for range 4 {
		conn := e.dial(t)
		for range 100 {
			stream, err := conn.NewStream(e.ctx, desc, jobpolicyv1grpc.PolicyService_ChoosePodsToDelete_FullMethodName, grpc.ForceCodecV2(testenv.BytesCodec{}))
			if err == nil && stream.SendMsg(message) == nil {
				_ = stream.CloseSend()
			}
		}
	}
	e.await(t, func() error {
		if n, err := e.handled(); err != nil || n < before+400 {
			return fmt.Errorf("%d of 400 calls handled: %v", n-before, err)
		}
		return nil
	})
}

func manyConnections(t *testing.T, e *attacker) {
	var open, closed int
	for range 1000 {
		if e.ctx.Err() != nil {
			return
		}
		conn, err := tls.Dial("tcp", e.Address, e.tls)
		if err != nil {
			closed++
			continue
		}
		e.hold(func() { _ = conn.Close() })
		framer := http2.NewFramer(conn, conn)
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil || framer.WriteSettings() != nil {
			closed++
			continue
		}
		if _, err := framer.ReadFrame(); err != nil {
			closed++
			continue
		}
		open++
	}
	if closed == 0 {
		t.Errorf("all %d connections of one caller are open", open)
	}
}

// smallAnswers makes as many calls as its connections may have open, and lets the engine send
// the answers of none of them.
func smallAnswers(t *testing.T, e *attacker) {
	metadata := strings.Repeat("x", 14<<10)
	for range 100 {
		if e.ctx.Err() != nil {
			return
		}
		conn, err := tls.Dial("tcp", e.Address, e.tls)
		if err != nil {
			t.Error(err)
			return
		}
		e.hold(func() { _ = conn.Close() })
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		// The engine may close the connection.
		_ = testenv.AskWithoutWindow(conn, 250, map[string]string{"x-metadata": metadata}, healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{})
	}
}

func silentConnections(t *testing.T, e *attacker) {
	for range 1000 {
		if e.ctx.Err() != nil {
			return
		}
		conn, err := net.Dial("tcp", e.Address)
		if err != nil {
			t.Error(err)
			return
		}
		e.hold(func() { _ = conn.Close() })
	}
}

func longName(t *testing.T, e *attacker) {
	req := testenv.Snapshot()
	req.Job.Name = strings.Repeat("x", 10<<20)
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t)).DecideJob(e.ctx, req); err == nil {
		t.Error("a name of 10 MB is accepted")
	}
}

// manyRows is what an executor sends of the largest Job whose failed pods wait, with
// all that a pod failure policy looks at. It is no attack, and is answered.
func manyRows(t *testing.T, e *attacker) {
	req := testenv.FailedSnapshot()
	req.Spec.BackoffLimit = 1 << 20
	for i := range 99_000 {
		row := proto.CloneOf(req.UnaccountedPods[0])
		row.Uid = binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i+1000))
		row.Failure = &jobpolicyv1.PodFailure{
			PodName: fmt.Sprintf("job-%05d-abcde", i), ContainerExits: []*jobpolicyv1.ContainerExit{{ContainerName: "main", ExitCode: 1}},
		}
		req.UnaccountedPods = append(req.UnaccountedPods, row)
	}
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t)).DecideJob(e.ctx, req); err != nil && e.ctx.Err() == nil {
		t.Errorf("a request of %d bytes: %v", proto.Size(req), err)
	}
}

func manyCalls(t *testing.T, e *attacker) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t))
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			for range 50 {
				_, _ = client.DecideJob(e.ctx, testenv.Snapshot()) // or be told to slow down
			}
		})
	}
	wait.Wait()
}

// emptyRows is a request of that size whose rows have two bytes each. No list is longer than the
// contract allows.
func emptyRows(size int) []byte {
	exits := bytes.Repeat([]byte("\x12\x00"), 1000)
	failure := append(binary.AppendUvarint([]byte("\x32"), uint64(len(exits))), exits...)
	row := append(binary.AppendUvarint([]byte("\x3a"), uint64(len(failure))), failure...)
	return bytes.Repeat(row, size/len(row))
}

// denseCalls sends requests that are too small to be counted, and take long to be measured.
func denseCalls(t *testing.T, e *attacker) {
	conn := e.dial(t)
	message := emptyRows(64 << 10)
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			for range 10 {
				_ = send(e.ctx, conn, jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, message) // is refused
			}
		})
	}
	wait.Wait()
}

func manyEmptyRows(t *testing.T, e *attacker) {
	message := emptyRows(maxMessage)
	if err := send(e.ctx, e.dial(t), jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, message); err == nil {
		t.Error("8 million empty rows are accepted")
	}
}

// oddNames calls methods whose names are long or not UTF-8. Nobody must keep them.
func oddNames(t *testing.T, e *attacker) {
	conn := e.dial(t)
	var next atomic.Int32
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			for n := next.Add(1); n <= 1000; n = next.Add(1) {
				name := fmt.Sprintf("/%s/odd-%d-\xff\xfe%s", jobpolicyv1grpc.PolicyService_ServiceDesc.ServiceName, n, strings.Repeat("x", int(n)*12))
				if n%2 == 0 {
					name = "/odd\xff" + name
				}
				if err := send(e.ctx, conn, name, nil); status.Code(err) != codes.Unimplemented && e.ctx.Err() == nil {
					t.Errorf("a method that there is not: %.500v", err)
				}
			}
		})
	}
	wait.Wait()
	_, metrics, err := testenv.Get("http://" + e.HTTP + "/metrics")
	if err != nil || strings.Contains(metrics, "odd") {
		t.Errorf("%d bytes of metrics with odd names, error %v", len(metrics), err)
	}
}

func unreadMetrics(t *testing.T, e *attacker) {
	dial := func(request string) net.Conn {
		conn, err := net.Dial("tcp", e.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		e.hold(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, request) // or it is closed
		return conn
	}
	const request = "GET /metrics HTTP/1.1\r\nHost: engine\r\n"
	first := dial(request)
	for range 1000 {
		dial(strings.Repeat(request+"\r\n", 10))
	}
	// The first has made room for others, so the rest of its request comes too late.
	_, _ = io.WriteString(first, "\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(first), nil); err == nil {
		_ = resp.Body.Close()
		t.Errorf("the first of 1,000 connections is still open: %s", resp.Status)
	}
}

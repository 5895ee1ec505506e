package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testenv"
	"jobpolicy.dev/services/internal/testprocess"
)

var (
	allAttacks = flag.Bool("attack.all", false, "try every attack, not only the quick ones")
	measureFor = flag.Duration("attack.measure", 0, "measure a well-behaved caller's latency for so long, idle and under each attack")
)

// memoryLimit is that of the engine's container in deploy/kubernetes.
const memoryLimit = 512 << 20

// maxMessage is the contract's limit.
const maxMessage = 16 << 20

// A target is an engine as a process, built without the race detector, whose
// memory counts. It serves two callers over mutual TLS.
type target struct {
	process       *testprocess.Process
	address, http string
	noisy, good   *tls.Config
}

func newTarget(t *testing.T, program string) *target {
	t.Helper()
	authority := testenv.NewAuthority(t, "authority")
	server := authority.Issue(t, "engine")
	list := filepath.Join(t.TempDir(), "callers.yaml")
	callers := "callers:\n- {identity: 'cn:good', methods: ['*']}\n- {identity: 'cn:noisy', methods: ['*']}\n"
	if err := os.WriteFile(list, []byte(callers), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testprocess.StartProgram(t, program, nil, "--grpc-address=127.0.0.1:0", "--http-address=127.0.0.1:0",
		"--tls-cert-file", server.CertFile, "--tls-private-key-file", server.KeyFile, "--client-ca-file", authority.File,
		"--authorized-callers-file", list, "--memory-limit", strconv.Itoa(memoryLimit))
	return &target{
		process: p, address: p.Logged(t, "engine serving", "grpc"), http: p.Logged(t, "engine serving", "http"),
		noisy: clientTLS(t, authority, "noisy"), good: clientTLS(t, authority, "good"),
	}
}

func clientTLS(t *testing.T, authority *testenv.Authority, name string) *tls.Config {
	t.Helper()
	files := authority.Issue(t, name)
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(authority.File)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: "engine", NextProtos: []string{"h2"}}
}

func (e *target) dial(t *testing.T, cfg *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(e.address, grpc.WithTransportCredentials(credentials.NewTLS(cfg)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// peakMemory is the most that the process has ever had resident, in bytes.
func (e *target) peakMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.process.ID()))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if match == nil {
		t.Fatalf("no VmHWM in %s", b)
	}
	kib, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// handled is how many calls of the batch method have ended, by metrics.
func (e *target) handled() (int, error) {
	_, metrics, err := testprocess.Get("http://" + e.http + "/metrics")
	if err != nil {
		return 0, err
	}
	total := 0
	for _, match := range regexp.MustCompile(`grpc_server_handled_total\{[^}]*grpc_method="DecideJobs"[^}]*\} (\d+)`).FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// An attack does its worst, and returns when it has. What it holds open it holds
// until the test ends.
type attack func(t *testing.T, e *target)

var quickAttacks = map[string]attack{
	"a batch of 16 MiB":                  func(t *testing.T, e *target) { batches(t, e, 1) },
	"60 unfinished calls":                unfinishedCalls,
	"a request of one name of 10 MB":     longName,
	"as many rows as there may be":       manyRows,
	"a request that is large if decoded": manyEmptyRows,
}

var slowAttacks = map[string]attack{
	"four batches of 16 MiB":           func(t *testing.T, e *target) { batches(t, e, 4) },
	"a slow reader with 400 answers":   unreadAnswers,
	"1,000 connections":                manyConnections,
	"1,000 connections without a word": silentConnections,
	"100 calls at a time":              manyCalls,
}

func TestAttacksLeaveTheEngineItsMemoryAndOthersTheEngine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	program := filepath.Join(t.TempDir(), "jobpolicy-engine")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	attacks := maps.Clone(quickAttacks)
	if *allAttacks {
		maps.Copy(attacks, slowAttacks)
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			e := newTarget(t, program)
			good := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t, e.good))
			if _, err := good.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
				t.Fatal(err)
			}
			calm := quantiles(t, good, *measureFor)
			attack(t, e)
			stop := repeat(t, e, attack)
			under := quantiles(t, good, *measureFor)
			stop()
			if _, err := good.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
				t.Errorf("a well-behaved caller: %v", err)
			}
			peak := e.peakMemory(t)
			t.Logf("peak memory %d MiB of %d; latency idle %s, under attack %s", peak>>20, memoryLimit>>20, calm, under)
			if peak >= memoryLimit {
				t.Errorf("peak memory %d MiB, want below %d", peak>>20, memoryLimit>>20)
			}
		})
	}
}

// repeat goes on with the attack while others are measured, until it is stopped.
func repeat(t *testing.T, e *target, a attack) (stop func()) {
	var stopped atomic.Bool
	var wait sync.WaitGroup
	if *measureFor > 0 {
		wait.Go(func() {
			for !stopped.Load() {
				a(t, e)
			}
		})
	}
	return func() {
		stopped.Store(true)
		wait.Wait()
	}
}

// quantiles measures a caller that asks 100 times a second.
func quantiles(t *testing.T, client jobpolicyv1grpc.PolicyServiceClient, duration time.Duration) string {
	t.Helper()
	if duration == 0 {
		return "not measured"
	}
	var took []time.Duration
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		start := time.Now()
		if _, err := client.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
			t.Errorf("a well-behaved caller: %v", err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return fmt.Sprintf("p50 %s p99 %s of %d", took[len(took)/2], took[len(took)*99/100], len(took))
}

// largeBatch is a valid request of nearly 16 MiB.
var largeBatch = sync.OnceValues(func() ([]byte, error) {
	item := testenv.FailedSnapshot()
	for i := 0; proto.Size(item) < maxMessage/1000-500; i++ {
		row := proto.CloneOf(item.UnaccountedPods[0])
		row.Uid = binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i+1000))
		row.Failure = &jobpolicyv1.PodFailure{PodName: strings.Repeat("x", 200)}
		item.UnaccountedPods = append(item.UnaccountedPods, row)
	}
	item.Spec.BackoffLimit = 1 << 20
	return proto.Marshal(&jobpolicyv1.DecideJobsRequest{Requests: slices.Repeat([]*jobpolicyv1.DecideJobRequest{item}, 1000)})
})

// send sends bytes as they are.
func send(ctx context.Context, conn *grpc.ClientConn, method string, message []byte) error {
	return conn.Invoke(ctx, method, message, new([]byte), grpc.ForceCodecV2(testenv.BytesCodec{}))
}

func batches(t *testing.T, e *target, n int) {
	message, err := largeBatch()
	if err != nil {
		t.Error(err)
		return
	}
	conn := e.dial(t, e.noisy)
	var wait sync.WaitGroup
	var answered atomic.Int32
	for range n {
		wait.Go(func() {
			err := send(t.Context(), conn, jobpolicyv1grpc.PolicyService_DecideJobs_FullMethodName, message)
			if err == nil {
				answered.Add(1)
			} else {
				t.Logf("a batch: %v", err)
			}
		})
	}
	wait.Wait()
	if answered.Load() == 0 && t.Context().Err() == nil {
		t.Errorf("none of %d batches of %d bytes is answered", n, len(message))
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

func unfinishedCalls(t *testing.T, e *target) {
	transport := &http.Transport{TLSClientConfig: e.noisy, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	var refused atomic.Int32
	for range 60 {
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				"https://"+e.address+jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, unfinished(t.Context()))
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
	// Two have a caller's share of memory, and the others are told to slow down.
	testenv.Eventually(t, func() error {
		if n := refused.Load(); n < 58 && t.Context().Err() == nil {
			return fmt.Errorf("%d calls refused", n)
		}
		return nil
	})
}

func unreadAnswers(t *testing.T, e *target) {
	before, err := e.handled()
	if err != nil {
		t.Error(err)
		return
	}
	message, err := proto.Marshal(&jobpolicyv1.DecideJobsRequest{
		Requests: slices.Repeat([]*jobpolicyv1.DecideJobRequest{testenv.FailedSnapshot()}, 1000),
	})
	if err != nil {
		t.Error(err)
		return
	}
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	for range 4 {
		conn := e.dial(t, e.noisy)
		for range 100 {
			stream, err := conn.NewStream(t.Context(), desc, jobpolicyv1grpc.PolicyService_DecideJobs_FullMethodName, grpc.ForceCodecV2(testenv.BytesCodec{}))
			if err == nil && stream.SendMsg(message) == nil {
				_ = stream.CloseSend()
			}
		}
	}
	testenv.Eventually(t, func() error {
		if n, err := e.handled(); (err != nil || n < before+400) && t.Context().Err() == nil {
			return fmt.Errorf("%d of 400 calls handled: %v", n-before, err)
		}
		return nil
	})
}

func manyConnections(t *testing.T, e *target) {
	var open, closed int
	for range 1000 {
		conn, err := tls.Dial("tcp", e.address, e.noisy)
		if err != nil {
			closed++
			continue
		}
		t.Cleanup(func() { _ = conn.Close() })
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

func silentConnections(t *testing.T, e *target) {
	for range 1000 {
		conn, err := net.Dial("tcp", e.address)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
}

func longName(t *testing.T, e *target) {
	req := testenv.Snapshot()
	req.Job.Name = strings.Repeat("x", 10<<20)
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t, e.noisy)).DecideJob(t.Context(), req); err == nil {
		t.Error("a name of 10 MB is accepted")
	}
}

// manyRows is what an executor sends of the largest Job whose failed pods wait, with
// all that a pod failure policy looks at. It is no attack, and is answered.
func manyRows(t *testing.T, e *target) {
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
	if _, err := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t, e.noisy)).DecideJob(t.Context(), req); err != nil {
		t.Errorf("a request of %d bytes: %v", proto.Size(req), err)
	}
}

func manyCalls(t *testing.T, e *target) {
	client := jobpolicyv1grpc.NewPolicyServiceClient(e.dial(t, e.noisy))
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			for range 50 {
				_, _ = client.DecideJob(t.Context(), testenv.Snapshot()) // or be told to slow down
			}
		})
	}
	wait.Wait()
}

func manyEmptyRows(t *testing.T, e *target) {
	// Of two bytes each; no list is longer than the contract allows.
	exits := bytes.Repeat([]byte("\x12\x00"), 1000)
	failure := append(binary.AppendUvarint([]byte("\x32"), uint64(len(exits))), exits...)
	row := append(binary.AppendUvarint([]byte("\x3a"), uint64(len(failure))), failure...)
	message := bytes.Repeat(row, maxMessage/len(row))
	if err := send(t.Context(), e.dial(t, e.noisy), jobpolicyv1grpc.PolicyService_DecideJob_FullMethodName, message); err == nil {
		t.Error("8 million empty rows are accepted")
	}
}

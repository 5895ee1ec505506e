package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"jobpolicy.dev/services/internal/testenv"
)

// An attacker is a process of its own: the work of attacking shall not count as latency
// of the engine. It is the test binary, told by this variable what to do.
const attackerRole = "JOBPOLICY_TEST_ATTACKS"

// attacked is what it prints after each time that it did its worst.
const attacked = "attacked"

// orders say whom to attack, and how.
type orders struct {
	Attack, Address, HTTP, Authority string
	Identity                         testenv.Pair
	Once                             bool
}

// An attacker carries out its orders.
type attacker struct {
	orders
	tls  *tls.Config
	ctx  context.Context // ends the attack
	held []func()
}

// hold calls release before the next attack.
func (e *attacker) hold(release func()) { e.held = append(e.held, release) }

func (e *attacker) release() {
	for _, release := range e.held {
		release()
	}
	e.held = nil
}

func (e *attacker) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn := dial(t, e.Address, e.tls)
	e.hold(func() { _ = conn.Close() })
	return conn
}

// await waits until check returns nil, or the attack is to end. It checks seldom, because a
// check may ask the engine for its metrics, which shall not count as part of the attack.
func (e *attacker) await(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(attackPatience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil || e.ctx.Err() != nil {
			return
		}
	}
	t.Fatalf("does not happen: %v", err)
}

func dial(t *testing.T, address string, cfg *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(cfg)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// handled is how many calls of the method with large answers have ended, by metrics.
func (e *attacker) handled() (int, error) {
	_, metrics, err := testenv.Get("http://" + e.HTTP + "/metrics")
	if err != nil {
		return 0, err
	}
	total := 0
	for _, match := range regexp.MustCompile(`grpc_server_handled_total\{[^}]*grpc_method="ChoosePodsToDelete"[^}]*\} (\d+)`).FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// TestPlaysAttacker attacks until its standard input ends.
func TestPlaysAttacker(t *testing.T) {
	text := os.Getenv(attackerRole)
	if text == "" {
		t.Skip("TestAttacksLeaveTheEngineItsMemoryAndOthersTheEngine runs this as a process")
	}
	e := &attacker{}
	if err := json.Unmarshal([]byte(text), &e.orders); err != nil {
		t.Fatal(err)
	}
	e.tls = testenv.ClientTLS(t, e.Authority, e.Identity)
	attack := allAttacks[e.Attack]
	ended, end := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends
		end()
	}()
	for ended.Err() == nil {
		e.release()
		var cancel context.CancelFunc
		e.ctx, cancel = context.WithCancel(ended)
		e.hold(cancel)
		attack(t, e)
		fmt.Println(attacked)
		if e.Once {
			<-ended.Done()
		}
	}
	e.release()
}

// An attackerProcess is one of them, seen from outside.
type attackerProcess struct {
	times  atomic.Int32
	first  chan struct{} // closed after the first time, or when it has ended
	stdin  io.Closer
	cmd    *exec.Cmd
	output bytes.Buffer
	read   chan struct{}
}

// startAttacker returns when the attacker has done its worst once. With leave it has one
// processor at most, and that only while neither the engine nor other callers want it, as
// if it ran on another machine.
func startAttacker(t *testing.T, o orders, leave bool) *attackerProcess {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{os.Args[0], "-test.run=^TestPlaysAttacker$", "-test.v"}
	env := append(os.Environ(), attackerRole+"="+string(text))
	if leave {
		args = append([]string{"chrt", "--idle", "0"}, args...)
		env = append(env, "GOMAXPROCS=1")
	}
	p := &attackerProcess{first: make(chan struct{}), read: make(chan struct{}), cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.Env = env
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // It has ended unless the test failed.
	go p.follow(stdout)
	select {
	case <-p.first:
	case <-time.After(attackPatience):
		t.Fatal("the attacker does not get to its end")
	}
	return p
}

// attackPatience ends a test that hangs; it is no expectation.
const attackPatience = 3 * time.Minute

func (p *attackerProcess) follow(stdout io.Reader) {
	defer close(p.read)
	once := sync.OnceFunc(func() { close(p.first) })
	defer once()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == attacked {
			p.times.Add(1)
			once()
			continue
		}
		fmt.Fprintln(&p.output, lines.Text())
	}
}

// stop ends the attack. It returns how often the attacker did its worst.
func (p *attackerProcess) stop(t *testing.T) int {
	t.Helper()
	_ = p.stdin.Close() // It notices.
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the attacker: %v\n%s", err, p.output.String())
	}
	return int(p.times.Load())
}

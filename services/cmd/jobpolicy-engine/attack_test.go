package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
	"jobpolicy.dev/services/internal/testenv"
)

var (
	attackSlowly = flag.Bool("attack.all", false, "try every attack, not only the quick ones")
	measureFor   = flag.Duration("attack.measure", 0, "measure a well-behaved caller's latency for so long at a time, idle and under each attack")
	attackOnly   = flag.String("attack.only", "", "try only attacks whose names match this regular expression")
)

// memoryLimit is that of the engine's container in deploy/kubernetes.
const memoryLimit = 512 << 20

// A target is an engine as a process, built without the race detector, whose
// memory counts. It serves two callers over mutual TLS.
type target struct {
	process   *testenv.Process
	authority *testenv.Authority
	address   string
	noisy     orders // of the attacker
}

func newTarget(t *testing.T, program, attack string) *target {
	t.Helper()
	authority := testenv.NewAuthority(t, "authority")
	server := authority.Issue(t, "engine")
	list := filepath.Join(t.TempDir(), "callers.yaml")
	callers := "callers:\n- {identity: 'cn:good', methods: ['*']}\n- {identity: 'cn:noisy', methods: ['*']}\n"
	testenv.WriteFile(t, list, callers)
	p := testenv.StartProgram(t, program, nil, "--grpc-address=127.0.0.1:0", "--http-address=127.0.0.1:0",
		"--tls-cert-file", server.CertFile, "--tls-private-key-file", server.KeyFile, "--client-ca-file", authority.File,
		"--authorized-callers-file", list, "--memory-limit", strconv.Itoa(memoryLimit))
	address := p.Logged(t, "engine serving", "grpc")
	return &target{process: p, authority: authority, address: address, noisy: orders{
		Attack: attack, Address: address, HTTP: p.Logged(t, "engine serving", "http"),
		Authority: authority.File, Identity: authority.Issue(t, "noisy"), Once: *measureFor == 0,
	}}
}

// goodCaller connects the other caller.
func (e *target) goodCaller(t *testing.T) jobpolicyv1grpc.PolicyServiceClient {
	t.Helper()
	conn := dial(t, e.address, testenv.ClientTLS(t, e.authority.File, e.authority.Issue(t, "good")))
	t.Cleanup(func() { _ = conn.Close() })
	client := jobpolicyv1grpc.NewPolicyServiceClient(conn)
	if _, err := client.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Fatal(err)
	}
	return client
}

// cpu is the processor time that the process has used.
func (e *target) cpu(t *testing.T) time.Duration {
	t.Helper()
	return cpuTime(t, fmt.Sprintf("/proc/%d/stat", e.process.ID()), ") ", 11, 13)
}

// machineCPU is the processor time that all processes have used.
func machineCPU(t *testing.T) time.Duration {
	t.Helper()
	return cpuTime(t, "/proc/stat", "cpu ", 0, 3)
}

// cpuTime adds the fields from one to another behind a mark in the first line of a file of
// /proc. They are in hundredths of a second.
func cpuTime(t *testing.T, file, mark string, from, to int) time.Duration {
	t.Helper()
	b := testenv.ReadFile(t, file)
	line, _, _ := strings.Cut(string(b), "\n")
	_, rest, _ := strings.Cut(line, mark)
	fields := strings.Fields(rest)
	if len(fields) < to {
		t.Fatalf("%s: %s", file, line)
	}
	var ticks int
	for _, field := range fields[from:to] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peakMemory is the most that the process has ever had resident, in bytes.
func (e *target) peakMemory(t *testing.T) int64 {
	t.Helper()
	b := testenv.ReadFile(t, fmt.Sprintf("/proc/%d/status", e.process.ID()))
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

// allAttacks are those to choose from, by name.
var allAttacks = func() map[string]attack {
	all := maps.Clone(quickAttacks)
	maps.Copy(all, slowAttacks)
	return all
}()

func chosenAttacks(t *testing.T) []string {
	t.Helper()
	only, err := regexp.Compile(*attackOnly)
	if err != nil {
		t.Fatal(err)
	}
	from := quickAttacks
	if *attackSlowly || *attackOnly != "" {
		from = allAttacks
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(name string) bool { return !only.MatchString(name) })
}

func TestAttacksLeaveTheEngineItsMemoryAndOthersTheEngine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	program := filepath.Join(t.TempDir(), "jobpolicy-engine")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var rows []row
	for _, name := range chosenAttacks(t) {
		t.Run(name, func(t *testing.T) {
			e := newTarget(t, program, name)
			r := row{name: name}
			if *measureFor > 0 {
				r.measure(t, e)
			} else {
				underAttack(t, e)
			}
			if r.peak = e.peakMemory(t); r.peak >= memoryLimit {
				t.Errorf("peak memory %d MiB, want below %d", r.peak>>20, memoryLimit>>20)
			}
			rows = append(rows, r)
		})
	}
	t.Log("\n" + table(rows))
}

// underAttack checks that a well-behaved caller is served while the attacker holds on
// to what it got, and afterwards.
func underAttack(t *testing.T, e *target) {
	t.Helper()
	good := e.goodCaller(t)
	a := startAttacker(t, e.noisy, false)
	if _, err := good.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Errorf("a well-behaved caller under attack: %v", err)
	}
	a.stop(t)
	if _, err := good.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
		t.Errorf("a well-behaved caller after the attack: %v", err)
	}
}

// windows is how often a caller is measured, idle and under attack in turn. The median
// counts, so that one moment in which the machine was busy with something else does not.
const windows = 5

// mostTimes is how many times as long a well-behaved caller's p99 may be under attack.
const mostTimes = 3

// A row is what was seen of one attack.
type row struct {
	name        string
	peak        int64
	idle, under latency
	attacks     int     // in all windows
	processors  float64 // that the engine kept busy under attack
	others      float64 // processors that the rest of the machine kept busy in idle windows
}

func (r *row) times() float64 { return float64(r.under.p99) / float64(r.idle.p99) }

func (r *row) measure(t *testing.T, e *target) {
	t.Helper()
	good := e.goodCaller(t)
	var idle, under []latency
	var busy, others time.Duration
	for range windows {
		calm := machineCPU(t) - e.cpu(t)
		idle = append(idle, callFor(t, good, *measureFor))
		others += machineCPU(t) - e.cpu(t) - calm
		a := startAttacker(t, e.noisy, true)
		before := e.cpu(t)
		under = append(under, callFor(t, good, *measureFor))
		busy += e.cpu(t) - before
		r.attacks += a.stop(t)
	}
	r.idle, r.under = medians(idle), medians(under)
	r.processors = float64(busy) / float64(windows**measureFor)
	r.others = float64(others) / float64(windows**measureFor)
	if r.times() > mostTimes {
		t.Errorf("p99 of a well-behaved caller: idle %s, under attack %s, %.1f times as long; want %d times at most (other programs kept %.1f processors busy: on a busy machine this says little)",
			r.idle.p99, r.under.p99, r.times(), mostTimes, r.others)
	}
}

type latency struct{ p50, p99 time.Duration }

// callFor measures a caller that asks 200 times a second.
func callFor(t *testing.T, client jobpolicyv1grpc.PolicyServiceClient, duration time.Duration) latency {
	t.Helper()
	var took []time.Duration
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		start := time.Now()
		if _, err := client.DecideJob(t.Context(), testenv.Snapshot()); err != nil {
			t.Errorf("a well-behaved caller: %v", err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return latency{p50: took[len(took)/2], p99: took[len(took)*99/100]}
}

func medians(of []latency) latency {
	middle := func(value func(latency) time.Duration) time.Duration {
		sorted := slices.SortedFunc(slices.Values(of), func(a, b latency) int { return cmp.Compare(value(a), value(b)) })
		return value(sorted[len(sorted)/2])
	}
	return latency{
		p50: middle(func(l latency) time.Duration { return l.p50 }),
		p99: middle(func(l latency) time.Duration { return l.p99 }),
	}
}

func table(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "attack\tpeak memory\t")
	if *measureFor > 0 {
		fmt.Fprint(w, "p50 idle\tunder attack\tp99 idle\tunder attack\ttimes\tattacks\tprocessors: engine\tothers\t")
	}
	fmt.Fprintln(w)
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d MiB\t", r.name, r.peak>>20)
		if *measureFor > 0 {
			us := time.Microsecond
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\t%d\t%.2f\t%.2f\t", r.idle.p50.Round(us), r.under.p50.Round(us), r.idle.p99.Round(us), r.under.p99.Round(us),
				r.times(), r.attacks, r.processors, r.others)
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // to memory
	return text.String()
}

package bench

import (
	"fmt"
	"math"
	"runtime"
	"time"
)

// A Figure is the name of a measured value. Its text is the key in files.
type Figure string

// What is measured. Units are in the names.
const (
	Makespan        Figure = "makespan_s"
	LatencyP50      Figure = "latency_p50_ms"
	LatencyP99      Figure = "latency_p99_ms"
	JobEndLatency   Figure = "job_end_ms"
	FirstPodP50     Figure = "first_pod_p50_ms"
	FirstPodP99     Figure = "first_pod_p99_ms"
	IdleP50         Figure = "idle_latency_p50_ms"
	LatencyOverIdle Figure = "latency_over_idle"
	CallsPerPod     Figure = "calls_per_pod"
	StatusWrites    Figure = "status_writes"
	Events          Figure = "events"
	CPUPerPod       Figure = "cpu_per_pod_ms"
	ServerCPU       Figure = "server_cpu_per_pod_ms"
	KubeletCPU      Figure = "kubelet_cpu_per_pod_ms"
	OthersTime      Figure = "others_cpu_time_s"
	PeakMemory      Figure = "peak_rss_mib"
	Decisions       Figure = "decisions"
	DecisionsPerS   Figure = "decisions_per_s"
	RequestBytes    Figure = "request_bytes_per_decision"
	ResponseBytes   Figure = "response_bytes_per_decision"
	CeilingShare    Figure = "ceiling_share_pct"
	ServerMemory    Figure = "server_peak_rss_mib"
	MostPods        Figure = "most_pods"
	HeldMemory      Figure = "held_rss_mib"
	CPUPerEvent     Figure = "cpu_per_event_ms"
	CallsPerEvent   Figure = "calls_per_event"
	DecisionsEach   Figure = "decisions_per_event"
	BytesPerEvent   Figure = "steady_request_bytes_per_decision"
	EngineP99       Figure = "steady_engine_p99_ms"
	CPUGrowth       Figure = "cpu_per_event_growth"
	BytesGrowth     Figure = "request_bytes_growth"
	ConflictsAtOnce Figure = "conflicts_at_once_pct"
	ConflictsLater  Figure = "conflicts_later_pct"
	EventsLost      Figure = "events_lost"
	EventsSwapped   Figure = "events_out_of_order"
	EventsAfter     Figure = "events_after_last_job_s"
)

// A figureText says how a figure is shown.
type figureText struct {
	Figure
	title  string
	digits int
}

// figureTexts are all figures in the order in which tables show them.
var figureTexts = []figureText{
	{Makespan, "makespan, s", 2},
	{LatencyP50, "latency p50, ms", 1},
	{LatencyP99, "latency p99, ms", 1},
	{JobEndLatency, "last pod ended → Job ended, ms", 0},
	{FirstPodP50, "Job created → first pod seen p50, ms", 1},
	{FirstPodP99, "Job created → first pod seen p99, ms", 1},
	{IdleP50, "latency alone p50, ms", 1},
	{LatencyOverIdle, "latency beside the large Job ÷ alone", 2},
	{CeilingShare, "share of the request limit used for pods, %", 1},
	{ConflictsAtOnce, "updates at once that conflict, %", 1},
	{ConflictsLater, fmt.Sprintf("updates %d ms later that conflict, %%", updateDelay.Milliseconds()), 1},
	{EventsLost, "events lost, of two a Job", 0},
	{EventsSwapped, "Jobs whose events came in the wrong order", 0},
	{EventsAfter, "last Job ended → last event there, s", 1},
	{CallsPerPod, "API calls a pod", 3},
	{StatusWrites, "status writes", 0},
	{Events, "event writes", 0},
	{CPUPerPod, "CPU a pod, ms", 3},
	{ServerCPU, "API server and etcd: CPU a pod, ms", 3},
	{KubeletCPU, "simulated kubelet and observer: CPU a pod, ms", 3},
	{OthersTime, "both of these ÷ processors, s", 2},
	{PeakMemory, "peak memory, MiB", 1},
	{ServerMemory, "API server: peak memory, MiB", 1},
	{MostPods, "pods in the API server at a time, at most", 0},
	{HeldMemory, "memory with all pods running, MiB", 1},
	{Decisions, "decisions (syncs)", 0},
	{DecisionsPerS, "decisions (syncs) a second", 1},
	{RequestBytes, "bytes of a request to the engine", 0},
	{ResponseBytes, "bytes of its answer", 0},
	{CPUPerEvent, "CPU an event, ms", 2},
	{CallsPerEvent, "API calls an event", 2},
	{DecisionsEach, "decisions (syncs) an event", 2},
	{BytesPerEvent, "steady state: bytes of a request", 0},
	{EngineP99, "steady state: engine time a decision p99 ≤, ms", 2},
	{CPUGrowth, "CPU an event, largest ÷ smallest Job", 2},
	{BytesGrowth, "bytes of a request, largest ÷ smallest Job", 2},
}

func textOf(f Figure) figureText {
	for _, text := range figureTexts {
		if text.Figure == f {
			return text
		}
	}
	return figureText{Figure: f, title: string(f), digits: 2}
}

// Figures are those of one run. A figure that a contender does not have is absent.
type Figures map[Figure]float64

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mebibytes(bytes float64) float64 { return bytes / (1 << 20) }

func (f Figures) latency(sorted []time.Duration) {
	f[LatencyP50], f[LatencyP99] = milliseconds(spread(sorted, 0.5)), milliseconds(spread(sorted, 0.99))
}

// jobEnd adds the time from the end of the last pod until the only Job ended.
func (f Figures) jobEnd(r *run) {
	if end, _ := r.latencies(anyName); r.contender.writesStatus && len(end) == 1 {
		f[JobEndLatency] = milliseconds(end[0])
	}
}

// addCommonFigures adds the figures that every scenario has: what the contender used
// and did.
func (r *run) addCommonFigures(before, after reading) {
	f, pods := r.figures, float64(r.scenario.Pods)
	seen := after.metrics.minus(before.metrics)
	span := r.makespan()
	f[Makespan] = span.Seconds()
	f[CallsPerPod] = float64(r.calls.total()) / pods
	f[StatusWrites] = float64(r.calls.sum("update jobs/status", "patch jobs/status"))
	f[Events] = float64(r.calls.sum("create events", "patch events", "update events"))
	f[CPUPerPod] = milliseconds(after.cpu-before.cpu) / pods
	server, kubelet := after.server-before.server, after.kubelet-before.kubelet
	f[ServerCPU], f[KubeletCPU] = milliseconds(server)/pods, milliseconds(kubelet)/pods
	f[OthersTime] = (server + kubelet).Seconds() / float64(runtime.NumCPU())
	f[PeakMemory] = mebibytes(after.peak)
	// Such a Job has a new control plane, which served nothing before but the run that warms it up.
	if _, many := f[MostPods]; many && r.scenario.Pods > renewAfter {
		f[ServerMemory] = mebibytes(after.serverPeak)
	}
	if n := decisions(seen); n > 0 {
		f[Decisions], f[DecisionsPerS] = n, n/span.Seconds()
	}
	setPositive(f, RequestBytes, meanBytes(seen, "request"))
	setPositive(f, ResponseBytes, meanBytes(seen, "response"))
}

// perEvent derives the figures of a steady state.
func (f Figures) perEvent(before, after reading, events int) {
	seen, n := after.metrics.minus(before.metrics), float64(events)
	f[HeldMemory] = mebibytes(before.resident)
	f[CPUPerEvent] = milliseconds(after.cpu-before.cpu) / n
	f[CallsPerEvent] = float64(after.calls.minus(before.calls).total()) / n
	setPositive(f, DecisionsEach, decisions(seen)/n)
	setPositive(f, BytesPerEvent, meanBytes(seen, "request"))
	setPositive(f, EngineP99, 1000*seen.quantile(0.99, "jobpolicy_engine_decision_duration_seconds"))
}

// setPositive sets a figure if the value is positive and finite. Otherwise the contender does
// not have the figure.
func setPositive(f Figures, name Figure, value float64) {
	if value > 0 && !math.IsInf(value, 0) {
		f[name] = value
	}
}

// decisions counts the engine's decisions, or the syncs of the built-in controller.
func decisions(m metrics) float64 {
	if n := m.sum("jobpolicy_engine_decisions_total"); n > 0 {
		return n
	}
	return m.sum("job_controller_job_syncs_total")
}

// meanBytes is the mean size of the messages of a direction; NaN without any.
func meanBytes(m metrics, direction string) float64 {
	labels := []string{`grpc_method="DecideJob"`, `direction="` + direction + `"`}
	return m.sum("jobpolicy_engine_message_bytes_sum", labels...) / m.sum("jobpolicy_engine_message_bytes_count", labels...)
}

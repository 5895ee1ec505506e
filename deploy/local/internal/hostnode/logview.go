package hostnode

import (
	"fmt"
	"sync"
)

// logView is what the kubelet API may know of a pod's logs while its worker works.
type logView struct {
	mu         sync.Mutex
	containers map[string]containerLogs
}

// containerLogs names the runs of one container that have logs.
type containerLogs struct {
	// current and previous are attempts; -1 if there was none.
	current, previous int32
	// live is the log of the current run; nil if this process did not start it.
	live *runLog
	// waiting is why there is no run yet.
	waiting string
}

func (v *logView) show(containers []*container) {
	view := make(map[string]containerLogs, len(containers))
	for _, c := range containers {
		view[c.spec.Name] = logsOf(c)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.containers = view
}

func logsOf(c *container) containerLogs {
	logs := containerLogs{current: -1, previous: -1, waiting: waitingCreating}
	if c.waiting != nil {
		logs.waiting = c.waiting.Reason
	}
	if c.current != nil {
		logs.current, logs.live = c.current.attempt, c.current.log
	}
	if c.previous != nil {
		logs.previous = c.previous.attempt
	}
	if c.waiting != nil {
		logs.previous = logs.current // the next run is the one that is waited for
	}
	return logs
}

// find returns which attempt's log is asked for, and its live log if it may still grow. The errors are the kubelet's.
func (v *logView) find(pod, container string, previous bool) (attempt int32, live *runLog, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	logs, ok := v.containers[container]
	if !ok {
		return 0, nil, fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	if previous {
		if logs.previous < 0 {
			return 0, nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
		}
		return logs.previous, nil, nil
	}
	if logs.current < 0 {
		return 0, nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, logs.waiting)
	}
	return logs.current, logs.live, nil
}

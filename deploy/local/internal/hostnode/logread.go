package hostnode

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// readLog copies the wanted part of a log file to w, as the kubelet does. With Follow it goes on until the run's log,
// which may be nil for a run of an earlier life of the node, is complete, or ctx ends. Both streams are stored as one.
func readLog(ctx context.Context, path string, log *runLog, want *corev1.PodLogOptions, w io.Writer) error {
	opts := &logs.LogOptions{
		TailLines: want.TailLines, LimitBytes: want.LimitBytes, Follow: want.Follow, Timestamp: want.Timestamps,
	}
	switch {
	case want.SinceTime != nil:
		opts.Since = want.SinceTime.Time
	case want.SinceSeconds != nil:
		opts.Since = time.Now().Add(-durationOf(*want.SinceSeconds))
	}
	err := logs.ReadLogs(ctx, path, "", opts, growth{log: log}, w, w)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// growth answers the one question that the library asks of a container runtime: whether a log that is followed grows.
type growth struct {
	cri.RuntimeService
	log *runLog
}

func (g growth) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	status := &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	if g.log == nil || g.log.done.Load() {
		status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return &runtimeapi.ContainerStatusResponse{Status: status}, nil
}

// flushing sends everything at once: somebody watches.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(text []byte) (int, error) {
	n, err := f.ResponseWriter.Write(text)
	return n, errors.Join(err, http.NewResponseController(f.ResponseWriter).Flush())
}

// The kubelet's bounds of a termination message that is taken from the log.
const (
	messageLines = 80
	messageBytes = 2048
)

// logTail returns the end of a finished log as a termination message; empty if it cannot be read.
func logTail(path string) string {
	var b strings.Builder
	if readLog(context.Background(), path, nil, &corev1.PodLogOptions{TailLines: new(int64(messageLines))}, &b) != nil {
		return ""
	}
	text := b.String()
	return text[max(0, len(text)-messageBytes):]
}

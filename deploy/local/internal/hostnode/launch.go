package hostnode

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// prepareTimeout bounds the API reads before a container's start, during which its pod hears nothing else.
const prepareTimeout = 10 * time.Second

// runner turns containers into processes.
type runner struct {
	layout   layout
	launcher *launcher
	lookup   lookup
	tokens   tokenSource
	// base are the variables that every container gets.
	base   map[string]string
	logger *slog.Logger
}

// prepare makes the pod's directories. It may be called again, and then keeps what is there.
func (r *runner) prepare(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	if err := os.MkdirAll(r.layout.pod(pod.UID), 0o755); err != nil {
		return err
	}
	return makeVolumes(ctx, r.layout, pod, r.tokens, r.logger)
}

// start runs a container's command once. An error means that it could not be prepared, has left no trace, and may work
// later. A command that cannot be executed is no error but a run that has ended already, with StartError. When a started
// process ends, ended is called from another goroutine.
func (r *runner) start(ctx context.Context, pod *corev1.Pod, c *container, ended func(*run, ending, string)) (*run, error) {
	dir := r.layout.container(pod.UID, c.spec.Name)
	vars, err := r.furnish(ctx, pod, c.spec, dir)
	if err != nil {
		return nil, err
	}
	workingDir, err := makeWorkingDir(dir, c.spec.WorkingDir)
	if err != nil {
		return nil, err
	}
	logPath := r.layout.log(pod.UID, c.spec.Name, c.nextAttempt())
	log, err := createLog(logPath)
	if err != nil {
		return nil, err
	}
	n := &run{id: "hostprocess://" + string(uuid.NewUUID()), attempt: c.nextAttempt(), started: time.Now(), log: log}
	fallback := c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError
	n.process, err = r.execute(c.spec, vars, workingDir, log, func(e ending) {
		message := ""
		if fallback && e.code != 0 {
			message = logTail(logPath)
		}
		ended(n, e, message)
	})
	if err != nil {
		log.close()
		n.end = &runEnd{ending: ending{code: codeStartError, at: time.Now()}, reason: reasonStartError, message: err.Error()}
	}
	return n, nil
}

// furnish empties the container's directory, resolves its variables and mounts its volumes.
func (r *runner) furnish(ctx context.Context, pod *corev1.Pod, spec *corev1.Container, dir string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	declared, err := containerEnv(ctx, pod, spec, r.lookup)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mounted, err := mount(r.layout, pod, spec, dir)
	if err != nil {
		return nil, err
	}
	vars := maps.Clone(r.base)
	vars["HOSTNAME"] = hostname(pod)
	maps.Copy(vars, mounted)
	maps.Copy(vars, declared)
	vars[podDirVar] = r.layout.pod(pod.UID)
	return vars, nil
}

func hostname(pod *corev1.Pod) string {
	if pod.Spec.Hostname != "" {
		return pod.Spec.Hostname
	}
	return pod.Name
}

// makeWorkingDir applies the rule for workingDir that the package documents.
func makeWorkingDir(dir, wanted string) (string, error) {
	if filepath.IsAbs(wanted) {
		if info, err := os.Stat(wanted); err == nil && info.IsDir() {
			return wanted, nil
		}
	}
	path := filepath.Join(dir, filepath.Join("/", wanted))
	return path, os.MkdirAll(path, 0o755)
}

// execute finds and starts the command. $(VAR) in it can refer to every variable of the container.
func (r *runner) execute(spec *corev1.Container, vars map[string]string, dir string, log *runLog, ended func(ending)) (*process, error) {
	var argv []string
	for _, word := range slices.Concat(spec.Command, spec.Args) {
		argv = append(argv, expansion.Expand(word, expansion.MappingFuncFor(vars)))
	}
	path, err := lookPath(argv[0], dir, vars["PATH"])
	if err != nil {
		return nil, fmt.Errorf("unable to start container process: %w", err)
	}
	p, err := r.launcher.run(command{path: path, argv: argv, env: list(vars), dir: dir}, log, ended)
	if err != nil {
		return nil, fmt.Errorf("unable to start container process: %w", err)
	}
	return p, nil
}

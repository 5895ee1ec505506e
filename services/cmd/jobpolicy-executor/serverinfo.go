package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/jobpolicy/v1/jobpolicyv1grpc"
)

// contractVersion is the version of the contract that this program speaks.
const contractVersion = "jobpolicy.v1"

// A need is a capability that this executor needs of an engine, and what for.
type need struct {
	capability jobpolicyv1.Capability
	purpose    string
}

// needs are the needs of the enabled controllers and gates.
func (o *options) needs() []need {
	var all []need
	for _, capability := range []jobpolicyv1.Capability{
		jobpolicyv1.Capability_CAPABILITY_NON_INDEXED, jobpolicyv1.Capability_CAPABILITY_INDEXED, jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT,
		jobpolicyv1.Capability_CAPABILITY_ACTIVE_DEADLINE, jobpolicyv1.Capability_CAPABILITY_SUSPEND,
		jobpolicyv1.Capability_CAPABILITY_BACKOFF_LIMIT_PER_INDEX, jobpolicyv1.Capability_CAPABILITY_POD_FAILURE_POLICY,
		jobpolicyv1.Capability_CAPABILITY_SUCCESS_POLICY, jobpolicyv1.Capability_CAPABILITY_POD_REPLACEMENT_POLICY,
	} {
		all = append(all, need{capability, "--controllers=" + jobController})
	}
	all = append(all, need{jobpolicyv1.Capability_CAPABILITY_OPTIONS, "annotation " + wire.Policy},
		need{jobpolicyv1.Capability_CAPABILITY_TERMINATION_DEADLINE_NODE, "job.terminationDeadlineNode of a JobPolicy"})
	if o.controllers.enabled(cronJobController) {
		all = append(all, need{jobpolicyv1.Capability_CAPABILITY_CRON_JOB, "--controllers=" + cronJobController})
	}
	if len(o.controllers.groups) > 0 {
		all = append(all, need{jobpolicyv1.Capability_CAPABILITY_CLUSTER_GROUPS, "--cluster-group"})
	}
	if o.controllers.enabled(ttlController) {
		all = append(all, need{jobpolicyv1.Capability_CAPABILITY_TTL_AFTER_FINISHED, "--controllers=" + ttlController})
	}
	if o.jobs.gates.workloadWithJob {
		all = append(all, need{jobpolicyv1.Capability_CAPABILITY_POD_GROUPS, "--feature-gates=WorkloadWithJob=true"})
	}
	return all
}

// A serverInfo reads the versions and capabilities of engines, and logs each version
// once when it is read, and once when it first decides.
type serverInfo struct {
	read  func(context.Context) (*jobpolicyv1.GetServerInfoResponse, error)
	needs []need
	log   *slog.Logger

	mu     sync.Mutex
	logged map[string]bool // lines
	builds map[jobpolicyv1grpc.Build]bool
}

// newServerInfo returns a serverInfo that asks nothing before read is set.
func newServerInfo(needs []need, log *slog.Logger) *serverInfo {
	return &serverInfo{needs: needs, log: log, logged: map[string]bool{}, builds: map[jobpolicyv1grpc.Build]bool{}}
}

// errTooOld says that the engine lacks something, and what to do.
var errTooOld = errors.New("upgrade the engine first")

// check returns an error if the engine lacks what this executor needs. Then the executor is
// not ready, so that a rollout stops; it still manages the objects that the engine can
// decide on. An engine that does not say what it supports causes no error: it refuses what
// it does not know (UNIMPLEMENTED).
func (s *serverInfo) check(ctx context.Context) error {
	info, err := s.read(ctx)
	switch status.Code(err) {
	case codes.OK:
	case codes.Unimplemented, codes.PermissionDenied:
		s.say(slog.LevelWarn, "the policy engine does not say what it supports", slog.Any("error", err))
		return nil
	default:
		return fmt.Errorf("asking the engine what it supports: %w", err)
	}
	if missing := s.missing(info); missing != nil {
		err := fmt.Errorf("engine %s lacks %s: %w", info.GetVersion(), strings.Join(missing, ", "), errTooOld)
		s.say(slog.LevelError, "the policy engine is too old for this executor", slog.Any("error", err))
		return err
	}
	s.say(slog.LevelInfo, "policy engine connected", slog.String("engineVersion", info.GetVersion()), slog.Int64("maxRequestBytes", info.GetMaxRequestBytes()))
	return nil
}

// answered notes which engine has decided. It logs each version once.
func (s *serverInfo) answered(b jobpolicyv1grpc.Build) {
	if b == (jobpolicyv1grpc.Build{}) {
		return // It is too old to say.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.builds[b] {
		return
	}
	s.builds[b] = true
	s.log.Info("first decision of this policy engine", slog.String("engineVersion", b.Version), slog.String("rulesDigest", b.RulesDigest))
}

// missing names what the engine lacks.
func (s *serverInfo) missing(info *jobpolicyv1.GetServerInfoResponse) []string {
	if !slices.Contains(info.GetContractVersions(), contractVersion) {
		return []string{fmt.Sprintf("the contract %s (it has %q)", contractVersion, info.GetContractVersions())}
	}
	if !slices.Contains(info.GetCapabilities(), jobpolicyv1.Capability_CAPABILITY_CAPABILITIES) {
		return nil // It is too old to say.
	}
	var missing []string
	for _, n := range s.needs {
		if !slices.Contains(info.GetCapabilities(), n.capability) {
			missing = append(missing, fmt.Sprintf("%s, which %s needs", n.capability, n.purpose))
		}
	}
	return missing
}

// say logs each line only once. Calls are spread over replicas, which may have two versions
// during an upgrade, so the same lines would alternate.
func (s *serverInfo) say(level slog.Level, message string, attrs ...slog.Attr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprint(message, attrs)
	if s.logged[line] {
		return
	}
	s.logged[line] = true
	s.log.LogAttrs(context.Background(), level, message, attrs...)
}

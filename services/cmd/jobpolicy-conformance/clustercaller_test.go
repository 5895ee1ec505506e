package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/engine/snapshot"
	"jobpolicy.dev/executor/wire"
	"jobpolicy.dev/proto/answer"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/internal/testapi"
	"jobpolicy.dev/services/internal/testenv"
)

// Each of these callers of an API server is wrong in one thing, except the first. No
// write fails: what is wrong is the order, or what the caller does when an answer is lost.
func TestCallersOfAnAPIServer(t *testing.T) {
	cases := map[string]struct {
		flaw string
		want string // The check that finds it; "": none does.
	}{
		"it does everything right":                      {"", ""},
		"its status has the shape of the contract":      {"contract", ""},
		"its status has a shape of its own":             {"own shape", checkDurable},
		"it says that its status has such a shape":      {"own shape, as it says", ""},
		"it releases before it writes the status":       {"releases first", checkDurable},
		"it writes the status before it creates":        {"writes first", checkWrites},
		"it writes the status while it creates":         {"writes beside", checkWrites},
		"it repeats a creation without an answer":       {"repeats", checkBegins},
		"it forgets a creation without an answer":       {"forgets", checkUnknown},
		"it counts again when its write has no answer":  {"counts again", checkCount},
		"it stops when its write has no answer":         {"stops", checkLostWrites},
		"it deletes a pod too many":                     {"deletes one more", checkDelete},
		"it deletes a pod that ended, before it counts": {"deletes ended", checkDelete},
		"it deletes all that ended with one request":    {"deletes all", checkDelete},
		"it deletes a pod before it releases it":        {"deletes first", checkReleaseFirst},
		"it writes the status before it deletes":        {"writes, then deletes", checkWrites},
		"it writes the status while it deletes":         {"writes and deletes", checkWrites},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newClusterWatcher()
			w.opaque = tc.flaw == "own shape, as it says"
			playOnAPIServer(t, w, tc.flaw)
			assertFinds(t, w.results(), tc.want)
		})
	}
}

const (
	podsPath   = "/api/v1/namespaces/default/pods"
	statusPath = "/apis/batch/v1/namespaces/default/jobs/job/status"
)

var startOfPlay = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A clusterPlayer is a caller whose tasks are pods of an API server.
type clusterPlayer struct {
	*store
	url    string
	flaw   string
	step   int
	blind  bool // It does not look what became of a creation.
	again  int  // What it counts again.
	ended  bool
	known  []snapshot.Pod
	status *jobpolicyv1.JobStatus
}

// playOnAPIServer plays a Job to its end.
func playOnAPIServer(t *testing.T, w *clusterWatcher, flaw string) {
	s := newStore()
	real := httptest.NewServer(s)
	defer real.Close()
	f, err := newAPIProxy(&rest.Config{Host: real.URL}, w)
	if err != nil {
		t.Fatal(err)
	}
	before := httptest.NewServer(f)
	defer before.Close()
	p := &clusterPlayer{store: s, url: before.URL, flaw: flaw}
	for p.step = range 120 {
		d, err := answer.Decide(t.Context(), inProcess(w.decide), p.request)
		if err == nil {
			_ = p.carryOut(d)
		}
		if p.ended {
			return
		}
		if p.step%3 == 0 {
			s.end()
		}
	}
}

// request reads status and pods from the API server.
func (p *clusterPlayer) request(activePods bool) (*jobpolicyv1.DecideJobRequest, error) {
	object, list := &keeper{}, &corev1.PodList{}
	if err := p.call(http.MethodGet, statusPath, nil, object); err != nil {
		return nil, err
	}
	if !p.blind {
		if err := p.call(http.MethodGet, podsPath, nil, list); err != nil {
			return nil, err
		}
		p.known = nil
		for i := range list.Items {
			pod, err := wire.Pod(&list.Items[i])
			if err != nil {
				return nil, err
			}
			p.known = append(p.known, pod)
		}
	}
	p.blind = false
	status, err := p.read(object.Status)
	if err != nil {
		return nil, err
	}
	p.status = status
	spec := &jobpolicyv1.JobSpec{Parallelism: 2, Completions: new(int32(8)), BackoffLimit: 3}
	if p.step >= 6 && p.step < 18 && p.step%3 == 0 { // A user changes his mind.
		spec.Parallelism = 1
	}
	req := snapshot.Request(spec, status, p.known, snapshot.Options{ActivePods: activePods})
	req.Now = timestamppb.New(startOfPlay.Add(time.Duration(p.step) * time.Hour))
	req.Job = &jobpolicyv1.JobRef{Uid: []byte(uidBytes(p.job.UID)), Namespace: "default", Name: "job"}
	return req, nil
}

// carryOut stops at the first step that fails.
func (p *clusterPlayer) carryOut(d *jobpolicyv1.DecideJobResponse) error {
	steps := []func() error{
		func() error { return p.create(int(d.GetCreate().GetCount())) },
		func() error { return p.delete(d.GetDelete()) },
		func() error { return p.write(d.GetStatus()) },
		func() error { return p.release(d.GetRelease()) },
	}
	isNew := d.GetStatus() != nil && !bytes.Equal(essence(d.GetStatus()), essence(p.status))
	switch {
	case p.flaw == "releases first":
		steps[2], steps[3] = steps[3], steps[2]
	case p.flaw == "writes first":
		steps[0], steps[2] = steps[2], steps[0]
	case p.flaw == "writes, then deletes":
		steps[1], steps[2] = steps[2], steps[1]
	case p.flaw == "writes beside" && d.GetCreate() != nil && isNew:
		return p.writeWhile(d.GetStatus(), steps[0])
	case p.flaw == "writes and deletes" && d.GetDelete() != nil && isNew:
		return p.writeWhile(d.GetStatus(), steps[1])
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeWhile writes the status after a step has begun, and before it has ended.
func (p *clusterPlayer) writeWhile(status *jobpolicyv1.JobStatus, step func() error) error {
	begun, done := make(chan struct{}), make(chan error, 1)
	p.mu.Lock()
	p.begun, p.written = begun, make(chan struct{})
	p.mu.Unlock()
	go func() { done <- step() }()
	<-begun
	return errors.Join(p.write(status), <-done)
}

func (p *clusterPlayer) delete(pods []*jobpolicyv1.DeletePod) error {
	if p.flaw == "deletes all" {
		return p.call(http.MethodDelete, podsPath+"?fieldSelector=status.phase=Succeeded", nil, nil)
	}
	for _, pod := range p.known {
		i := slices.IndexFunc(pods, func(d *jobpolicyv1.DeletePod) bool { return bytes.Equal(d.GetUid(), pod.UID) })
		hasEnded := pod.Phase == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED
		if i < 0 && !(p.flaw == "deletes one more" && len(pods) > 0) && !(p.flaw == "deletes ended" && hasEnded && pod.Tracked) {
			continue
		}
		if i >= 0 && pods[i].GetReleaseFirst() && p.flaw != "deletes first" {
			if err := p.call(http.MethodPatch, podsPath+"/"+pod.Name, struct{}{}, nil); err != nil {
				return err
			}
		}
		if err := p.call(http.MethodDelete, podsPath+"/"+pod.Name, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *clusterPlayer) create(count int) error {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	pod.GenerateName, pod.Namespace, pod.Finalizers = "job-", "default", []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&p.job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	for range count {
		err := p.call(http.MethodPost, podsPath, pod, nil)
		if err != nil && p.flaw == "repeats" {
			err = p.call(http.MethodPost, podsPath, pod, nil)
		}
		if err != nil {
			p.blind = p.flaw == "forgets"
			return err
		}
	}
	return nil
}

func (p *clusterPlayer) write(decided *jobpolicyv1.JobStatus) error {
	if decided == nil {
		return nil
	}
	status, err := p.shaped(decided)
	if err != nil {
		return err
	}
	err = p.call(http.MethodPut, statusPath, status, nil)
	if err != nil && p.flaw == "counts again" {
		p.again = 8
	}
	p.ended = err == nil && answer.Finished(decided) != nil || err != nil && p.flaw == "stops"
	return err
}

// A keeper is the object that keeps the status.
type keeper struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            json.RawMessage `json:"status"`
}

// An ownShape is a status as this caller alone reads it.
type ownShape struct{ Encoded []byte }

// shaped is a status in the shape in which the caller keeps it.
func (p *clusterPlayer) shaped(decided *jobpolicyv1.JobStatus) (any, error) {
	switch p.flaw {
	case "contract":
		text, err := protojson.Marshal(decided)
		return map[string]any{"phase": "Running", "jobs": []json.RawMessage{text}}, err
	case "own shape", "own shape, as it says":
		text, err := protojson.Marshal(decided)
		return ownShape{text}, err
	}
	status, err := wire.APIStatus(decided)
	status.Failed += int32(p.again)
	return status, err
}

// read is the status in that shape.
func (p *clusterPlayer) read(text json.RawMessage) (*jobpolicyv1.JobStatus, error) {
	kept := struct {
		ownShape
		Jobs []json.RawMessage
	}{}
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, err
	}
	if len(kept.Encoded) > 0 {
		kept.Jobs = []json.RawMessage{kept.Encoded}
	}
	if len(kept.Jobs) > 0 {
		status := &jobpolicyv1.JobStatus{}
		return status, protojson.Unmarshal(kept.Jobs[0], status)
	}
	api := &batchv1.JobStatus{}
	if err := json.Unmarshal(text, api); err != nil {
		return nil, err
	}
	return wire.JobStatus(api)
}

func (p *clusterPlayer) release(uids [][]byte) error {
	for _, pod := range p.known {
		if !slices.ContainsFunc(uids, func(uid []byte) bool { return bytes.Equal(uid, pod.UID) }) {
			continue
		}
		if err := p.call(http.MethodPatch, podsPath+"/"+pod.Name, struct{}{}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *clusterPlayer) call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// Who reaches the kit's address of the API server needs no certificate: it is served to
// this machine alone.
func TestTheAPIProxyIsForThisMachine(t *testing.T) {
	real := httptest.NewServer(newStore())
	defer real.Close()
	kubeconfig := testapi.Kubeconfig(t, real.URL)
	address, err := startAPIProxy(t.Context(), kubeconfig, "localhost:0", newClusterWatcher())
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	p := &clusterPlayer{url: "http://" + address.String()}
	if err := p.call(http.MethodGet, statusPath, nil, job); err != nil || job.Name != "job" {
		t.Errorf("the Job is %q, %v", job.Name, err)
	}
	// A page of another site, whose name points to this machine (DNS rebinding).
	page, err := http.NewRequest(http.MethodGet, p.url+statusPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	page.Host = "evil.example:8001"
	answer, err := http.DefaultClient.Do(page)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site gets %s, want 403", answer.Status)
	}
	for flag, args := range map[string][2]string{"--api-listen must be": {kubeconfig, "0.0.0.0:0"}, "--kubeconfig": {"nowhere", "localhost:0"}} {
		_, err := startAPIProxy(t.Context(), args[0], args[1], newClusterWatcher())
		testenv.WantError(t, err, flag)
	}
}

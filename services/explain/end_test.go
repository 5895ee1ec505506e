package explain_test

import (
	"encoding/json"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine"
	"jobpolicy.dev/proto/jobend"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/services/explain"
)

func TestHowAJobFailed(t *testing.T) {
	end := &jobpolicyv1.JobEnd{
		Class: jobpolicyv1.EndClass_END_CLASS_POLICY, Rule: jobpolicyv1.Rule_RULE_POD_FAILURE_POLICY_MATCHED,
		PolicyRuleIndex: new(int32), PolicyRuleName: "bad-input", PodName: "job-1", ContainerName: "main", ExitCode: 2, Tries: 1,
	}
	target := condition(batchv1.JobFailureTarget, "PodFailurePolicy", "m")
	classified := condition(batchv1.JobConditionType(jobend.ConditionType), jobend.ClassName(end.GetClass()), jobend.Message(end))
	oomKilled := pod(1, corev1.PodFailed)
	oomKilled.Finalizers = []string{batchv1.JobTrackingFinalizer}
	oomKilled.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
	}}}
	tells := &jobpolicyv1.JobEnd{
		Class: jobpolicyv1.EndClass_END_CLASS_APPLICATION, PodName: "job-2", ContainerName: "main", ExitCode: 3,
		Failures: []*jobpolicyv1.EndFailure{
			{PodName: "job-2", ContainerName: "main", ExitCode: 3, Reason: "Error", TerminationMessage: "no such file"},
			{PodName: "job-1", Index: new(int32), Signal: 9},
		},
	}
	cases := map[string]struct {
		facts explain.Facts
		want  string
	}{
		"as its condition says": {
			facts: explain.Facts{Job: job(target, classified)},
			want: `{"class":"Policy","sentence":"Container main of pod job-1 failed with exit code 2, as rule bad-input of the pod failure policy describes.",` +
				`"rule":"podFailurePolicyMatched","policyRule":0,"policyRuleName":"bad-input","pod":"job-1","container":"main","exitCode":2,"tries":1}`,
		},
		"also when it has Failed": {
			facts: explain.Facts{Job: job(target, classified, condition(batchv1.JobFailed, "PodFailurePolicy", "m"))},
			want: `{"class":"Policy","sentence":"Container main of pod job-1 failed with exit code 2, as rule bad-input of the pod failure policy describes.",` +
				`"rule":"podFailurePolicyMatched","policyRule":0,"policyRuleName":"bad-input","pod":"job-1","container":"main","exitCode":2,"tries":1}`,
		},
		"before the status shows it": {
			facts: explain.Facts{Job: job(withLimit0), Pods: []corev1.Pod{oomKilled}},
			want: `{"class":"OutOfMemory","sentence":"Container main of pod job-1 ran out of memory.",` +
				`"rule":"backoffLimitExceeded","pod":"job-1","container":"main","exitCode":137,"reason":"OOMKilled","tries":1}`,
		},
		"with the pods that failed last": {
			facts: explain.Facts{Job: job(target, condition(batchv1.JobConditionType(jobend.ConditionType), "Application", jobend.Message(tells)))},
			want: `{"class":"Application","sentence":"Container main of pod job-2 failed with exit code 3.","pod":"job-2","container":"main","exitCode":3,` +
				`"failures":[{"pod":"job-2","container":"main","exitCode":3,"reason":"Error","terminationMessage":"no such file"},{"pod":"job-1","index":0,"signal":9}]}`,
		},
		"nothing but the reason of the condition is known": {facts: explain.Facts{Job: job(target)}, want: "null"},
		"it has not failed": {facts: explain.Facts{Job: job(classified)}, want: "null"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Now = now
			r, err := explain.Explain(tc.facts, engine.DecideJob)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(r.End)
			if err != nil || string(got) != tc.want {
				t.Errorf("%s, error %v; want\n%s", got, err, tc.want)
			}
		})
	}
}

func withLimit0(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32) }

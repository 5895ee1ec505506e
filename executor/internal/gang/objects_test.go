package gang

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func jobOf(name string, uid types.UID) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
}

func TestNamesOfAGang(t *testing.T) {
	long := func(n int, end string) string { return strings.Repeat("j", n-len(end)) + end }
	for _, name := range []string{"job", "a.b", long(57, ""), long(58, "-z"), long(58, "."), long(63, ""), long(253, ""), long(242, "-")} {
		job := jobOf(name, "1")
		other := jobOf(name, "2")
		workload, template := WorkloadName(job), templateName(job)
		group := PodGroupName(workload, template)
		for _, valid := range []string{workload, group, PodGroupName(long(253, ""), template)} {
			if problems := validation.IsDNS1123Subdomain(valid); len(problems) > 0 {
				t.Errorf("%s: %v", valid, problems)
			}
		}
		if problems := validation.IsDNS1123Label(template); len(problems) > 0 || !strings.HasSuffix(template, "-pgt-0") {
			t.Errorf("%s: %v", template, problems)
		}
		if workload == WorkloadName(other) {
			t.Errorf("two Jobs named %s have one Workload name, %s", name, workload)
		}
	}
	job := jobOf("job", "1")
	if w := WorkloadName(job); !strings.HasPrefix(w, "job-") || !strings.HasPrefix(PodGroupName(w, templateName(job)), w+"-job-pgt-0-") {
		t.Errorf("names are %s and %s", w, PodGroupName(w, templateName(job)))
	}
}

package wire

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

const (
	memory = jobpolicyv1.RaisedResource_RAISED_RESOURCE_MEMORY
	cpu    = jobpolicyv1.RaisedResource_RAISED_RESOURCE_CPU
)

// resources are a request and a limit of memory, or of CPU; "": none.
func resources(name corev1.ResourceName, request, limit string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}, Limits: corev1.ResourceList{}}
	if request != "" {
		r.Requests[name] = resource.MustParse(request)
	}
	if limit != "" {
		r.Limits[name] = resource.MustParse(limit)
	}
	return r
}

func TestWhetherTheTemplateLeavesRoom(t *testing.T) {
	big, small := resources(corev1.ResourceMemory, "256Mi", "1Gi"), resources(corev1.ResourceMemory, "", "64Mi")
	cases := map[string]struct {
		main, other corev1.ResourceRequirements
		pod         *corev1.ResourceRequirements
		container   string
		want        bool
	}{
		"the limit is above it":            {main: big},
		"so is that of the named one":      {main: big, other: small, container: "main"},
		"there is room for another one":    {main: big, other: small, want: true},
		"nothing is set":                   {},
		"there is room for the whole pod":  {pod: &small, want: true},
		"also if one container is to grow": {pod: &small, container: "main", want: true},
		"there is none for the whole pod":  {main: small, pod: &big},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := &corev1.PodSpec{Resources: tc.pod, Containers: []corev1.Container{{Name: "main", Resources: tc.main}, {Name: "other", Resources: tc.other}}}
			before := template.DeepCopy()
			if got := RaisesResources(template, &jobpolicyv1.NextTryResources{Resource: memory, Max: "512Mi", Container: tc.container}); got != tc.want {
				t.Errorf("raises: %t, want %t", got, tc.want)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template has changed:\n%s", diff)
			}
		})
	}
}

func TestResourcesAreRaised(t *testing.T) {
	cases := map[string]struct {
		of             jobpolicyv1.RaisedResource
		request, limit string
		by             float64
		most           string
		wantRequest    string
		wantLimit      string
	}{
		"memory":                         {memory, "100Mi", "200Mi", 1.5, "8Gi", "150Mi", "300Mi"},
		"guaranteed":                     {memory, "1Gi", "1Gi", 2.25, "8Gi", "2304Mi", "2304Mi"},
		"up to the maximum, as a ratio":  {memory, "1Gi", "2Gi", 16, "3Gi", "1536Mi", "3Gi"},
		"a template above the maximum":   {memory, "1Gi", "4Gi", 2, "3Gi", "1Gi", "4Gi"},
		"a request alone":                {memory, "1G", "", 1.5, "8Gi", "1500M", ""},
		"a limit alone":                  {memory, "", "64Mi", 2, "8Gi", "", "128Mi"},
		"nothing":                        {memory, "", "", 2, "8Gi", "", ""},
		"CPU":                            {cpu, "250m", "1", 2, "1500m", "375m", "1500m"},
		"by more than any quantity says": {cpu, "1", "1", 1e64, "4", "4", "4"},
		"to a multiple of no byte":       {memory, "101", "103", 1.1, "8Gi", "111", "113"},
		"of nothing at all":              {memory, "0", "0", 2, "8Gi", "0", "0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := corev1.ResourceMemory
			if tc.of == cpu {
				key = corev1.ResourceCPU
			}
			job := &batchv1.Job{}
			job.Spec.Template.Spec = corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "init", Resources: resources(key, tc.request, tc.limit)}},
				Containers:     []corev1.Container{{Name: "main", Resources: resources(key, tc.request, tc.limit)}},
			}
			before := job.DeepCopy()
			create := &jobpolicyv1.CreatePods{Count: 1, Raised: []*jobpolicyv1.RaisedPods{{Step: 3, Multiplier: tc.by, Resource: tc.of, Max: tc.most}}}
			pod := NewPods(job, nil, create)[0].From(job)
			want := resources(key, tc.wantRequest, tc.wantLimit)
			for where, got := range map[string]corev1.ResourceRequirements{
				"init": pod.Spec.InitContainers[0].Resources, "main": pod.Spec.Containers[0].Resources,
			} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", where, diff)
				}
			}
			if got := pod.Annotations["jobpolicy.dev/resource-step"]; got != "3" {
				t.Errorf("step %q, want 3", got)
			}
			create.Raised[0].Container = "main"
			pod = NewPods(job, nil, create)[0].From(job)
			if diff := cmp.Diff(want, pod.Spec.Containers[0].Resources); diff != "" {
				t.Errorf("only main (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Spec.Template.Spec.InitContainers, pod.Spec.InitContainers); diff != "" {
				t.Errorf("only main, but (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(before, job); diff != "" {
				t.Errorf("the Job was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Whatever the template says, requests stay below limits or equal to them, nothing shrinks, and what is
// raised stays within the maximum.
func TestRaisedResourcesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := func(name string) string {
			return fmt.Sprint(rapid.Int64Range(1, 1<<40).Draw(t, name)) + rapid.SampledFrom([]string{"", "m", "k", "Ki"}).Draw(t, name+" suffix")
		}
		key := rapid.SampledFrom([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}).Draw(t, "resource")
		before := resources(key, quantity("request"), quantity("limit"))
		after, most := *before.DeepCopy(), resource.MustParse(quantity("most"))
		by := bounded(rapid.Float64Range(1, 1e9).Draw(t, "by"), largest(key, &before), most)
		raising{key, by, most, math.Round}.multiplyResource(&after)
		compared := func(r corev1.ResourceRequirements) int {
			request, limit := r.Requests[key], r.Limits[key]
			return request.Cmp(limit)
		}
		if order := compared(before); key == corev1.ResourceCPU && order != compared(after) {
			t.Errorf("before %v, after %v", before, after)
		}
		for i, list := range []corev1.ResourceList{after.Requests, after.Limits} {
			was, is := []corev1.ResourceList{before.Requests, before.Limits}[i][key], list[key]
			if is.Cmp(was) < 0 || is.Cmp(was) > 0 && is.Cmp(most) > 0 {
				t.Errorf("%v became %v, with at most %v", &was, &is, &most)
			}
		}
	})
}

// A pod with resources of its own grows with its containers: what its template sets for the pod and for
// two containers, as "request limit", and what becomes of that.
func TestThePodIsRaisedWithItsContainers(t *testing.T) {
	cases := map[string]struct {
		container string
		by        float64
		most      string
		template  [3][2]string
		want      [3][2]string
	}{
		"all":                          {"", 2, "8Gi", [3][2]string{{"2Gi", "3Gi"}, {"1Gi", "2Gi"}, {"1Gi", "2Gi"}}, [3][2]string{{"4Gi", "6Gi"}, {"2Gi", "4Gi"}, {"2Gi", "4Gi"}}},
		"up to the maximum of the pod": {"", 4, "4Gi", [3][2]string{{"2Gi", "2Gi"}, {"1Gi", "1Gi"}, {"1Gi", "1Gi"}}, [3][2]string{{"4Gi", "4Gi"}, {"2Gi", "2Gi"}, {"2Gi", "2Gi"}}},
		"one container and the pod":    {"main", 2, "8Gi", [3][2]string{{"2Gi", "2Gi"}, {"1Gi", "2Gi"}, {"1Gi", "2Gi"}}, [3][2]string{{"4Gi", "4Gi"}, {"2Gi", "4Gi"}, {"1Gi", "2Gi"}}},
		"the pod alone has any":        {"main", 2, "8Gi", [3][2]string{{"2Gi", "2Gi"}, {"", ""}, {"", ""}}, [3][2]string{{"4Gi", "4Gi"}, {"", ""}, {"", ""}}},
		"parts of bytes":               {"", 1.5, "8Gi", [3][2]string{{"6", "6"}, {"3", "3"}, {"3", "3"}}, [3][2]string{{"9", "9"}, {"4", "4"}, {"4", "4"}}},
		"a pod with none":              {"", 2, "2Gi", [3][2]string{{"", ""}, {"1Gi", "2Gi"}, {"1Gi", ""}}, [3][2]string{{"", ""}, {"1Gi", "2Gi"}, {"2Gi", ""}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := func(quantities [2]string) corev1.ResourceRequirements {
				return resources(corev1.ResourceMemory, quantities[0], quantities[1])
			}
			job, whole := &batchv1.Job{}, of(tc.template[0])
			job.Spec.Template.Spec = corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Resources: of(tc.template[1])}, {Name: "log", Resources: of(tc.template[2])}}, Resources: &whole,
			}
			before := job.DeepCopy()
			pod := NewPods(job, nil, &jobpolicyv1.CreatePods{Count: 1, Raised: []*jobpolicyv1.RaisedPods{{
				Step: 1, Multiplier: tc.by, Resource: memory, Max: tc.most, Container: tc.container,
			}}})[0].From(job)
			got := []corev1.ResourceRequirements{*pod.Spec.Resources, pod.Spec.Containers[0].Resources, pod.Spec.Containers[1].Resources}
			if diff := cmp.Diff([]corev1.ResourceRequirements{of(tc.want[0]), of(tc.want[1]), of(tc.want[2])}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, job); diff != "" {
				t.Errorf("the Job was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// The API server takes a pod with resources of its own if the containers' requests together are within its request,
// and each limit is within its limit. What it takes of a template, it takes of each raised pod.
func TestARaisedPodIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}).Draw(t, "resource")
		quantity := func(n int64) resource.Quantity {
			if key == corev1.ResourceCPU {
				return *resource.NewMilliQuantity(n, resource.DecimalSI)
			}
			return *resource.NewQuantity(n, resource.BinarySI)
		}
		asks := func(request, limit int64) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{
				Requests: corev1.ResourceList{key: quantity(request)}, Limits: corev1.ResourceList{key: quantity(limit)},
			}
		}
		job := &batchv1.Job{}
		var request, limit int64
		for i := range rapid.IntRange(1, 4).Draw(t, "containers") {
			r := rapid.Int64Range(1, 1<<38).Draw(t, "request")
			l := r + rapid.SampledFrom([]int64{0, 1, r}).Draw(t, "more")
			request, limit = request+r, max(limit, l)
			job.Spec.Template.Spec.Containers = append(job.Spec.Template.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Resources: asks(r, l)})
		}
		whole := asks(request, max(request, limit))
		job.Spec.Template.Spec.Resources = &whole
		most := quantity(rapid.Int64Range(1, 1<<42).Draw(t, "most"))
		pod := NewPods(job, nil, &jobpolicyv1.CreatePods{Count: 1, Raised: []*jobpolicyv1.RaisedPods{{
			Step: 1, Multiplier: rapid.Float64Range(1, 10).Draw(t, "by"), Max: most.String(),
			Resource:  map[corev1.ResourceName]jobpolicyv1.RaisedResource{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}[key],
			Container: rapid.SampledFrom([]string{"", "0"}).Draw(t, "container"),
		}}})[0].From(job)
		own := pod.Spec.Resources
		ownRequest, ownLimit := own.Requests[key], own.Limits[key]
		var sum resource.Quantity
		for _, c := range pod.Spec.Containers {
			r, l := c.Resources.Requests[key], c.Resources.Limits[key]
			sum.Add(r)
			if r.Cmp(l) > 0 || l.Cmp(ownLimit) > 0 {
				t.Errorf("container %s asks for %s, at most %s, and the pod for at most %s", c.Name, &r, &l, &ownLimit)
			}
		}
		if sum.Cmp(ownRequest) > 0 || ownRequest.Cmp(ownLimit) > 0 {
			t.Errorf("the containers ask for %s, the pod for %s, at most %s", &sum, &ownRequest, &ownLimit)
		}
		if was := whole.Limits[key]; ownLimit.Cmp(was) > 0 && ownLimit.Cmp(most) > 0 {
			t.Errorf("the pod may have %s, and the option says %s", &ownLimit, &most)
		}
	})
}

// What passes as a maximum is a quantity for Kubernetes, too, and the other way round.
func TestAMaximumIsAQuantity(t *testing.T) {
	for _, text := range []string{
		"8Gi", "1", "0", "-1", "+1", "1.5G", ".5", "1.", ".", "", "500m", "0m", "0.0", "1e3", "1E3", "1e-3", "1E", "1e", "8 Gi", "8GB", "8gi", "K", "1K", "1k", "1n", "1u",
		"0x10", "1_000", "00012", "12345678901234567890123", "9e99",
	} {
		q, err := resource.ParseQuantity(text)
		if want := err == nil && q.Sign() > 0; options.PositiveQuantity(text) != want {
			t.Errorf("%q: %t, want %t (%v)", text, !want, want, err)
		}
	}
}

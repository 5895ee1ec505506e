package manifest

import (
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A part is one of those of a Job or CronJob whose fields are often written into another one, or in another spelling.
type part struct {
	path string
	of   reflect.Type
}

// jobParts are those of a Job's spec, from the outside in.
func jobParts(spec string) []part {
	return []part{
		{spec, reflect.TypeFor[batchv1.JobSpec]()},
		{spec + ".template.spec", reflect.TypeFor[corev1.PodSpec]()},
		{spec + ".template.spec.containers[]", reflect.TypeFor[corev1.Container]()},
	}
}

// expectedAt lists where a Job or CronJob has a field of the name that an unknown field has, in whatever spelling. Fields
// of containers are in it only if there is no other.
func expectedAt(unknown string, in any) (paths []string) {
	var parts []part
	switch in.(type) {
	case *batchv1.Job:
		parts = jobParts("spec")
	case *batchv1.CronJob:
		parts = append([]part{{"spec", reflect.TypeFor[batchv1.CronJobSpec]()}}, jobParts("spec.jobTemplate.spec")...)
	}
	name := unknown[strings.LastIndex(unknown, ".")+1:]
	for _, p := range parts {
		if strings.HasSuffix(p.path, "[]") && len(paths) > 0 {
			break
		}
		fields := reflect.VisibleFields(p.of)
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool {
			known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return strings.EqualFold(known, name)
		})
		if i >= 0 {
			known, _, _ := strings.Cut(fields[i].Tag.Get("json"), ",")
			paths = append(paths, p.path+"."+known)
		}
	}
	return paths
}

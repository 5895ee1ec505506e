package api

import (
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// typesModule is the module of the types of Kubernetes. Its v0.37.2 belongs to Kubernetes v1.37.2.
const typesModule = "k8s.io/api"

// TypesMinor is the minor version of Kubernetes whose types the program was compiled with, for
// example 37. 0: the build does not tell, as in a test.
func TypesMinor() int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return 0
	}
	return typesMinor(info)
}

func typesMinor(info *debug.BuildInfo) int {
	for _, module := range info.Deps {
		if module.Path != typesModule {
			continue
		}
		if module.Replace != nil {
			module = module.Replace
		}
		_, rest, _ := strings.Cut(module.Version, ".")
		minor, _, _ := strings.Cut(rest, ".")
		return number(minor)
	}
	return 0
}

// minorOf reads a minor version such as "37" or "37+", as some vendors write it; 0: it is neither.
func minorOf(info *version.Info) int { return number(strings.TrimSuffix(info.Minor, "+")) }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

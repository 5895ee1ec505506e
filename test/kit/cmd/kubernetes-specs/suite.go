package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apps" // the specs
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init" // a spec that fails prints what is in its namespace
	"k8s.io/kubernetes/test/utils/image"

	"jobpolicy.dev/test/node/specs"
)

// oneSpec is the argument of a process that runs a single spec.
const oneSpec = "one-spec"

const suiteName = "Kubernetes"

// list returns the specs of the three controllers, in the order in which they stand in the source.
func list() []specs.Spec {
	suite, _ := ginkgo.GinkgoConfiguration()
	return specs.FromReport(ginkgo.PreviewSpecs(suiteName, suite))
}

// images returns the images whose containers the specs run.
func images() []string {
	return []string{image.GetE2EImage(image.BusyBox), image.GetPauseImageName()}
}

// runOne is the whole of a process that runs one spec. It returns its exit code.
func runOne(args []string) int {
	flags := flag.NewFlagSet(oneSpec, flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	report := flags.String("report", "", "")
	text := flags.String("spec", "", "")
	_ = flags.Parse(args) // it exits on an error
	if err := configure(*kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.FocusStrings = []string{"^" + regexp.QuoteMeta(suiteName+" "+*text) + "$"}
	reporter.NoColor, reporter.Succinct, reporter.SilenceSkips = true, true, true
	reporter.JSONReport = *report
	if !ginkgo.RunSpecs(silent{}, suiteName, suite, reporter) {
		return exitFailed
	}
	return exitOK
}

// configure fills the framework's settings the one way there is: by its flags.
func configure(kubeconfig string) error {
	flags := flag.NewFlagSet("framework", flag.ContinueOnError)
	config.CopyFlags(config.Flags, flags)
	framework.RegisterCommonFlags(flags)
	framework.RegisterClusterFlags(flags)
	if err := flags.Parse([]string{"--kubeconfig=" + kubeconfig, "--provider=skeleton"}); err != nil {
		return err
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	return nil
}

// silent is told when a spec fails, which RunSpecs returns as well.
type silent struct{}

func (silent) Fail() {}

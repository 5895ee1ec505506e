package jobend

import (
	"strings"
	"unicode"
	"unicode/utf8"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

const (
	// failedKey is the key of each part of a message that tells a failed pod.
	failedKey = "failed"
	// termination begins the last part of such a value. What follows it is the message, as it is.
	termination = "message="
	// maxMessageBytes is the API's limit on the message of a condition.
	maxMessageBytes = 32768
)

// MaxLineBytes is the length of the longest LastLine.
const MaxLineBytes = 200

// failureText is one failed pod, such as pod=train-x7k2p exitCode=3 message=no such file. The keys are those of the end
// of a Job.
func failureText(f *jobpolicyv1.EndFailure) string {
	known := writeParts(&jobpolicyv1.JobEnd{
		PodName: f.GetPodName(), Index: f.Index, ContainerName: f.GetContainerName(),
		ExitCode: f.GetExitCode(), Signal: f.GetSignal(), Reason: f.GetReason(),
	})
	if message := f.GetTerminationMessage(); message != "" {
		known = append(known, termination+message)
	}
	return strings.Join(known, " ")
}

// readFailure adds to an end what failureText has written.
func readFailure(end *jobpolicyv1.JobEnd, text string) bool {
	pod, f := &jobpolicyv1.JobEnd{}, &jobpolicyv1.EndFailure{}
	for text != "" {
		if message, last := strings.CutPrefix(text, termination); last {
			f.TerminationMessage = message
			break
		}
		var key, value string
		var ok bool
		if key, value, text, ok = next(text); !ok || !readPart(pod, key, value) {
			return false
		}
	}
	f.PodName, f.Index, f.ContainerName = pod.GetPodName(), pod.Index, pod.GetContainerName()
	f.ExitCode, f.Signal, f.Reason = pod.GetExitCode(), pod.GetSignal(), pod.GetReason()
	end.Failures = append(end.Failures, f)
	return true
}

// LastLine is the last line of a container's termination message that is not empty, with a space for each character that
// cannot be printed: it can neither move a terminal's cursor nor turn the direction of a text. A line of more than
// MaxLineBytes is cut and ends in an ellipsis. It shares no memory with the message.
func LastLine(message string) string {
	message = strings.TrimRightFunc(message, blank)
	line := strings.TrimLeftFunc(message[strings.LastIndexAny(message, "\n\r")+1:], blank)
	if len(line) > 5*MaxLineBytes {
		line = line[:5*MaxLineBytes] // More than enough, however long the characters are that become a space.
	}
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(line, string(utf8.RuneError)))
	const ellipsis = "…"
	if len(line) > MaxLineBytes {
		end := MaxLineBytes - len(ellipsis)
		for !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end] + ellipsis
	}
	return strings.Clone(line)
}

// blank reports whether a character shows nothing.
func blank(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

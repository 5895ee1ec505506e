package jobpolicyv1grpc

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// ErrorDomain is the domain of every google.rpc.ErrorInfo of the engine.
const ErrorDomain = "jobpolicy.dev"

const reasonPrefix = "ERROR_REASON_"

// ReasonOf reads the reason from an error that a client returned. It is
// UNSPECIFIED if the error has none, because it comes from the transport or from
// something before the engine, or if this version does not know the reason.
func ReasonOf(err error) jobpolicyv1.ErrorReason {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == ErrorDomain {
			return jobpolicyv1.ErrorReason(jobpolicyv1.ErrorReason_value[reasonPrefix+info.GetReason()])
		}
	}
	return jobpolicyv1.ErrorReason_ERROR_REASON_UNSPECIFIED
}

// awayDelay is RetryDelay while an engine is away. Dial tries to reconnect as often.
const awayDelay = 2 * time.Second

// RetryDelay says how long to wait before a call that returned an error is repeated, in
// addition to the caller's own growing delay, if it has one. again is false if waiting does
// not help: then the request, the caller or the configuration has to change, or the caller
// has ended the call. The table at PolicyService says the rest.
func RetryDelay(err error) (delay time.Duration, again bool) {
	s := status.Convert(err)
	for _, detail := range s.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration(), true
		}
	}
	if s.Code() == codes.Unavailable || s.Code() == codes.DeadlineExceeded {
		return awayDelay, true
	}
	return 0, false
}

// ReasonName is the reason as it stands in google.rpc.ErrorInfo. That of a reason which this
// version does not know is its number.
func ReasonName(r jobpolicyv1.ErrorReason) string {
	return strings.TrimPrefix(r.String(), reasonPrefix)
}

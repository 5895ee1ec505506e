package jobpolicyv1grpc

import (
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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

// ReasonName is the reason as it stands in google.rpc.ErrorInfo. That of a reason which this
// version does not know is its number.
func ReasonName(r jobpolicyv1.ErrorReason) string {
	return strings.TrimPrefix(r.String(), reasonPrefix)
}

// Package policy reads JobPolicies (jobpolicy.dev/v1alpha1) and says which options a Job or a
// CronJob has: those of the policy that its annotation names, those that the annotation holds
// itself, or those of the policy that its namespace names for all others. One policy applies as
// a whole; nothing merges.
//
// The API server need not serve JobPolicies. Then whoever names one is told so, and all else goes
// on. It may begin to serve them at any time.
package policy

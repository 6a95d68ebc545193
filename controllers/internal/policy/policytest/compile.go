package policytest

import (
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
)

// expression is an expression of the policy, for the compiler.
type expression struct{ name, text string }

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType} }

// Compile130 checks that the oldest API server with ValidatingAdmissionPolicies accepts the expressions of a policy,
// which has parameters or not.
func Compile130(t testing.TB, policy *admissionv1.ValidatingAdmissionPolicySpec, params bool) {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}
	for _, v := range policy.Variables {
		if result := compiler.CompileAndStoreVariable(expression{v.Name, v.Expression}, options, environment.NewExpressions); result.Error != nil {
			t.Errorf("variable %s: %v\n%s", v.Name, result.Error, v.Expression)
		}
	}
	for i, v := range policy.Validations {
		condition := &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if result := compiler.CompileCELExpression(condition, options, environment.NewExpressions); result.Error != nil {
			t.Errorf("validation %d: %v\n%s", i, result.Error, v.Expression)
		}
		if v.MessageExpression == "" {
			continue
		}
		options := plugincel.OptionalVariableDeclarations{HasParams: params}
		message := &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		if result := compiler.CompileCELExpression(message, options, environment.NewExpressions); result.Error != nil {
			t.Errorf("message %d: %v\n%s", i, result.Error, v.MessageExpression)
		}
	}
}

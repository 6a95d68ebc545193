# the user creates the StatefulSingleton with onEviction ReplaceFirst
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 1, Recreate
    web-1-a is created
    web-1-a is bound to n1
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-a waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded True NotReplacedFirst: spec.onEviction is ReplaceFirst, but a drain evicts pod web-1-a as with Replace: Deployment web has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate
# an administrator drains its node
    the drain evicts web-1-a
    web-1-b is created
    web-1-b is bound to n2
    web-1-a stops
    web-1-b waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-1-b, epoch 2
  patch pod web-1-b: Grant, epoch 2
  set a condition of pod web-1-b: Ready, True
    web-1-b runs its program
  patch pod web-1-b: Remind, epoch 2
= Running, active: web-1-b, waiting: none
= Available True ActivePodReady: pod web-1-b is running
= Progressing False Steady: no handover in progress
= Degraded True NotReplacedFirst: spec.onEviction is ReplaceFirst, but a drain evicts pod web-1-b as with Replace: Deployment web has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate
# an administrator uncordons all nodes
= Running, active: web-1-b, waiting: none
= Available True ActivePodReady: pod web-1-b is running
= Progressing False Steady: no handover in progress
= Degraded True NotReplacedFirst: spec.onEviction is ReplaceFirst, but a drain evicts pod web-1-b as with Replace: Deployment web has strategy Recreate, which deletes the old pod before it creates the next one; with RollingUpdate, the next pod can wait at its gate

from .audit import BlurAudit as BlurAudit
from .audit import assert_private as assert_private
from .audit import audit_blur as audit_blur
from .calls import Command as Command
from .findings import Finding as Finding
from .nats import Witness as Witness
from .nats import replay as replay

from .loss.adversary import AdversaryError as AdversaryError
from .loss.adversary import adversary_error as adversary_error
from .loss.loss import expected_distance as expected_distance
from .loss.loss import mechanism_loss as mechanism_loss
from .loss.remap import bayes_remap as bayes_remap
from .loss.remap import remapped_loss as remapped_loss
from .loss.retrieval import retrieval_radius as retrieval_radius
from .loss.retrieval import table_retrieval_radius as table_retrieval_radius

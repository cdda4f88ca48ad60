"""Who is treated like whom, by the models of the study nearest to the paper's levels."""

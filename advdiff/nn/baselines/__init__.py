"""What AdvDIFFormer is compared with."""
